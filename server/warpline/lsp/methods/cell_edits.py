"""Fixes of a notebook's run as edits of its cells.

A fix is made for the script that the cells ran as. It is brought to the script that the cells would be now,
and from the lines of that to the lines of the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsprotocol import types

from warpline.lsp.server import Server
from warpline.lsp.state.cells import notebook_of
from warpline.lsp.state.documents import Document
from warpline.lsp.state.session import Session
from warpline.model.report import Edit, Fix
from warpline.notebook.exported import Exported, Part, export
from warpline.text.lines import content, split

_NOT_HERE = (
    "this fix cannot be put into the cells: it changes a magic or reaches over the end of a cell, or the "
    "cells have changed. Make the change by hand, or profile the notebook again"
)


@dataclass(frozen=True, slots=True)
class Script:
    """The script that an open notebook's cells would be now."""

    path: str
    exported: Exported
    cells: Sequence[Document]


def script_now(ls: Server, session: Session) -> Script | None:
    """The open notebook as a script. None where the run is not of a notebook, or the notebook is closed.

    Raises Problem where the cells do not make a script."""
    notebook = notebook_of(session.loaded)
    cells = ls.documents.cells(notebook) if notebook is not None else None
    if notebook is None or cells is None:
        return None
    exported = export(notebook, [cell.text for cell in cells])
    return Script(session.loaded.report.script, exported, cells)


def text_now(ls: Server, session: Session) -> dict[str, str]:
    """The script's path and text, where :func:`script_now` has one. Raises Problem as it does."""
    script = script_now(ls, session)
    return {} if script is None else {script.path: script.exported.text}


def refuse(ls: Server, rule: str, why: str = _NOT_HERE) -> None:
    """Say why nothing was changed."""
    ls.show(f"{rule}: {why}", types.MessageType.Warning)


def in_cells(fix: Fix, script: Script) -> Fix | None:
    """A fix of the script with its edits in the cells; those of other files stay. None where an edit touches
    what is in no cell or in several, or a line that is another in the cell (a magic)."""
    lines = split(script.exported.text)
    edits = []
    for edit in fix.edits:
        made = edit if edit.file != script.path else _in_cell(edit, script, lines)
        if made is None:
            return None
        edits.append(made)
    return replace(fix, edits=tuple(edits))


def _in_cell(edit: Edit, script: Script, lines: Sequence[str]) -> Edit | None:
    part = _part(edit, script.exported.parts)
    if part is None:
        return None
    cell = script.cells[part.number - 1]
    if len(cell.lines) != part.last - part.first + 1:
        return None  # edited while the fix was made
    first, last = edit.start[0], min(edit.end[0], part.last)
    of_script = [content(line) for line in lines[first - 1 : last]]
    of_cell = [content(line) for line in cell.lines[first - part.first : last - part.first + 1]]
    if of_script != of_cell:
        return None
    shift = 1 - part.first
    start, end, text = (edit.start[0] + shift, edit.start[1]), (edit.end[0] + shift, edit.end[1]), edit.text
    if edit.end[0] > part.last:
        # Up to the beginning of the line below the cell: up to the end of its last line.
        bottom = (part.last + shift, len(content(cell.lines[part.last - part.first])))
        end, text = bottom, text.removesuffix("\n")
        if edit.start[0] > part.last:
            start, text = bottom, f"\n{text}"
    return Edit(cell.uri, start, end, text.replace("\n", cell.end) if cell.end != "\n" else text)


def _part(edit: Edit, parts: Sequence[Part]) -> Part | None:
    """The cell that an edit is in. The line below a cell is its end, as far as nothing of it is changed."""
    for part in parts:
        below = (part.last + 1, 0)
        if part.first <= edit.start[0] and (edit.end[0] <= part.last or edit.end == below):
            return part if edit.start[0] <= part.last or edit.start == below else None
    return None
