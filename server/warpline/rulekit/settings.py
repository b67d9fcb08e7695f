"""Settings of torch's: the line of the script that made one, and one written below its imports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.rulekit.origins import Origin, origin, overridden
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.imports import import_line
from warpline.wire.births import Setting


@dataclass(frozen=True)
class Said:
    """A setting that counts: the line that made it, and the value where it is written; None where that is
    not known."""

    setting: Setting
    written: Origin | None

    @property
    def place(self) -> tuple[str, int]:
        return self.written.place if self.written is not None else self.setting.frames[0].place


def said(context: Context, values: Mapping[str, object], setters: Collection[str] = ()) -> Said | None:
    """The line of the script's own that gave one of the settings its value in ``values``, where it is the
    last to set any of them: an earlier one would be overruled. ``setters``: functions that make them."""
    made = [one for one in context.profile.facts.settings if one.name in values]
    last = max(made, key=lambda one: one.order, default=None)
    if last is None or last.value != values[last.name] or not last.frames:
        return None
    return Said(last, _written(context, last, setters))


def _written(context: Context, setting: Setting, setters: Collection[str]) -> Origin | None:
    """Where the value that a line sets is written: on that line, or in the configuration that it reads. None
    where that is not known, or another value would be set."""
    place = setting.frames[0]
    source = context.source(place.file)
    calls = source.calls(place.line, *setters) if setters else ()
    given = [call.args[0].value for call in calls if call.args]
    given += [node.value for node in source.at(place.line, cst.Assign) if source.line(node) == place.line]
    found = [origin(context, source, value) for value in given]
    meant = [one for one in found if one.editable and one.source.literal(one.node) == setting.value]
    return meant[0] if len(meant) == 1 and overridden(context, meant[0]) is None else None


def said_instead(found: Said, code: str, title: str, reason: str) -> Fix:
    """``code`` as the value of the setting. Raises Refused, with ``reason`` where its line does not name the
    value."""
    if found.written is None:
        raise Refused(reason)
    return Edits(found.written.source).replace(found.written.node, code).fix(title, "unsafe")


def set_in_script(
    context: Context, name: str, code: str, title: str, *, unless: tuple[str, ...], reason: str
) -> Fix:
    """``code`` below the script's imports, with ``{name}`` for how it writes ``name``, which is torch's.
    Raises Refused, with ``reason`` where the script uses one of the names ``unless``. A branch that did not
    run may use it: it comes later, and decides where it is taken."""
    source = context.source(context.profile.manifest.script)
    if not source.text:
        raise Refused("the source of the script is not available")
    used = (node for node in source.nodes(cst.Name, cst.Attribute) if source.is_named(node, *unless))
    if any(context.reached.node(source, node) is not False for node in used):
        raise Refused(reason)
    edits = Edits(source)
    written = edits.add_import(name, "import torch")
    index = import_line(source.module)
    if not index:
        raise Refused("the file does not start with imports, so there is no place for the setting")
    edits.insert_after(source.module.body[index - 1], code.format(name=written), apart=True)
    return edits.fix(title, "unsafe")
