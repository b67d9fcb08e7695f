"""A fix as a unified diff of the text that ran."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from warpline.model.report import Edit
from warpline.text.edits import apply
from warpline.text.lines import lines_of


def diff(edits: Sequence[Edit], sources: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """Its lines, without line ends; none for a file whose text is not known, or not the one edited.

    ``names``: what a path is called on the screen.
    """
    found: list[str] = []
    for file in dict.fromkeys(edit.file for edit in edits):
        if file not in sources:
            continue
        try:
            after = apply(sources[file], [edit for edit in edits if edit.file == file])
        except ValueError:  # a report from elsewhere, whose edits are of another text
            continue
        shown = names.get(file, file)
        found += difflib.unified_diff(
            lines_of(sources[file]), lines_of(after), shown, shown, n=2, lineterm=""
        )
    return found
