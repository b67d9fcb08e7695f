"""A size of layers that a library makes: written in the configuration of its model, or left out there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.changing import Changes
from warpline.rulekit.context import Context
from warpline.rulekit.frameworks import construction_call, made_by, runs_in
from warpline.rulekit.holders import argument
from warpline.rulekit.literals import written_for
from warpline.syntax.edits import Refused
from warpline.syntax.source import NOT_LITERAL, Source, is_method
from warpline.wire.births import Holder
from warpline.wire.frameworks import Construction, constructions
from warpline.wire.run import Site
from warpline.wire.sites import Framework, facts_of

_LOADED = ".from_pretrained"  # the end of the key of what makes a model of a checkpoint
_LOADS, _SETS = "load_state_dict", "resize_token_embeddings"


@dataclass(frozen=True)
class Configured:
    """The size ``name`` of what ``one`` made at ``site``. ``holder``: where it is written; None where that is
    not known. ``default``: the script does not pass it."""

    site: Site
    one: Construction
    name: str
    holder: Holder | None
    default: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """Where it is written, or is to be."""
        return (self.holder or self.site).place


def configured(context: Context, place: tuple[str, int], size: int) -> Configured | None:
    """The configuration that gives ``size`` to layers of a library that run at a line. None where none is
    known to, or the line is none of the library's."""
    for one in constructions():
        if one.sizes and runs_in(context, place, one):
            recorded = list(_recorded(context, one, size))
            found = [*(each for each in recorded if each.holder), *_written(context, one, size), *recorded]
            if found:
                return found[0]
    return None


def _recorded(context: Context, one: Construction, size: int) -> Iterator[Configured]:
    """What the run recorded; what was made last comes first."""
    for site in reversed(made_by(context, one)):
        values = facts_of(Framework, site).values or {}
        for name in one.sizes:
            found = argument(site, name)
            if values.get(name, found.value if found is not None else None) == size:
                passed = found is not None and found.passed
                yield Configured(site, one, name, found.holder if found and passed else None, not passed)


def _written(context: Context, one: Construction, size: int) -> Iterator[Configured]:
    """The setting where the text writes the size once, in a configuration that a model is made of."""
    for other in constructions():
        for site in made_by(context, other) if other.module in one.makes else ():
            call = construction_call(context, site, other)
            found = written_for(*call, [(name, size) for name in one.sizes]) if call is not None else None
            if call is not None and found is not None:
                source = call[0]
                line, column = source.span(found)[0]
                yield Configured(site, one, one.sizes[0], Holder("entry", source.path, line, column))


def padding(context: Context, known: Configured, padded: int) -> Fix:
    """The edit that passes ``padded`` to the configuration, where the library's default has given the size.
    Raises Refused."""
    call = construction_call(context, known.site, known.one)
    if call is None or not known.default:
        raise Refused(f"set `{known.name}` to {padded} where the model's configuration is made")
    changes = Changes(context)
    changes.absent(*call, known.name, str(padded))
    return changes.fix(f"Pad `{known.name}`", "unsafe")


def decided_elsewhere(context: Context, known: Configured) -> str:
    """Why the size of a library's layers cannot be changed there: weights that are loaded have it, or a later
    statement sets it again. Else ""."""
    for other in constructions():
        if other.module in known.one.makes and other.key.endswith(_LOADED) and made_by(context, other):
            return (
                "a checkpoint is loaded, whose weights have this size; "
                "`model.resize_token_embeddings(pad_to_multiple_of=64)` pads them once they are loaded"
            )
    for source in context.sources():
        for node in source.nodes(cst.Call, cst.Assign):
            if context.reached.node(source, node) is False:
                continue
            line = source.line(node)
            if is_method(node, _LOADS):
                return f"`{_LOADS}` at line {line} may load weights of this size"
            if is_method(node, _SETS) or _sets(source, node, known.name):
                return f"line {line} sets `{known.name}` again"
    return ""


def _sets(source: Source, node: cst.CSTNode, name: str) -> bool:
    """Whether an attribute of that name gets anything but a literal."""
    targets = [one.target for one in node.targets] if isinstance(node, cst.Assign) else []
    given = any(isinstance(one, cst.Attribute) and one.attr.value == name for one in targets)
    return given and isinstance(node, cst.Assign) and source.literal(node.value) is NOT_LITERAL
