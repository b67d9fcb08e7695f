"""A setting of torch's, written below the imports of the script."""

from __future__ import annotations

import libcst as cst

from warpline.model.report import Fix
from warpline.rulekit.context import Context
from warpline.syntax.edits import Edits, Refused
from warpline.syntax.imports import import_line


def set_in_script(
    context: Context, name: str, code: str, title: str, *, unless: tuple[str, ...], reason: str
) -> Fix:
    """``code`` below the script's imports, with ``{name}`` for how it writes ``name``, which is torch's.
    Raises Refused, with ``reason`` where the script uses one of the names ``unless``."""
    source = context.source(context.profile.manifest.script)
    if not source.text:
        raise Refused("the source of the script is not available")
    if any(source.is_named(node, *unless) for node in source.nodes(cst.Name, cst.Attribute)):
        raise Refused(reason)
    edits = Edits(source)
    written = edits.add_import(name, "import torch")
    index = import_line(source.module)
    if not index:
        raise Refused("the file does not start with imports, so there is no place for the setting")
    edits.insert_after(source.module.body[index - 1], code.format(name=written), apart=True)
    return edits.fix(title, "unsafe")
