"""Settings that are written in a text of the script's, which its own code or a parser reads."""

from __future__ import annotations

import ast
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .loaded import members
from .scopes import Scopes
from .syntax import File, same

#: A name with its value, as in ``workers: 4``, ``workers = 4`` and ``"workers": 4,``.
_ENTRY = re.compile(
    r"""(?:(?<=["'])|(?<![\w.\-"']))([A-Za-z_][\w.\-]*)["']?[ \t]*[:=][ \t]*(["']?)([^\s,#"'{}]+)\2"""
)

_REMARK = re.compile(r"(?:^|\s)(?:#|//)")


class Text(NamedTuple):
    """A string literal of several lines, each as it is in the file."""

    file: File
    node: ast.Constant

    def entries(self) -> Iterator[Tuple[str, str, int, int]]:
        """Each name and the text of its value, with the value's line and column in the file."""
        _, first = self.file.place_of(self.node)
        for line in range(self.node.lineno, (self.node.end_lineno or 0) + 1):
            code = self.file.lines[line - 1]
            if line == self.node.end_lineno:  # counted in bytes
                code = code.encode("utf-8")[: self.node.end_col_offset].decode("utf-8", "replace")
            remark = _REMARK.search(code, first)
            for found in _ENTRY.finditer(code, first, remark.start() if remark else len(code)):
                yield found[1], found[3], line, found.start(3)
            first = 0


def texts(scopes: Scopes) -> Iterator[Text]:
    """The strings of the user's files that ran, docstrings and parts of f-strings left out."""
    for file in scopes.all_files():
        for node in file.texts:
            whole = (node.end_lineno or 0) - node.lineno == str(node.value).count("\n")  # no line is joined
            if whole and not isinstance(file.parents.get(node), (ast.Expr, ast.JoinedStr)):
                yield Text(file, node)


def line_of_text(scopes: Scopes, text: str) -> Optional[Tuple[str, int]]:
    """The file and the line on which the literal ``text`` begins, if the script has it once."""
    found = [one for one in texts(scopes) if one.node.value == text]
    return (found[0].file.path, found[0].node.lineno) if len(found) == 1 else None


def in_texts(
    scopes: Scopes, name: str, value: Any, holder: Any
) -> Iterator[Tuple[int, int, str, str, int, int]]:
    """Where a text gives ``name`` the ``value``, as :meth:`Objects.anywhere` ranks places.

    Only texts all of whose names are in ``holder``: it was made of them.
    """
    present = members(holder) if holder is not None else {}
    if name not in present:
        return
    for text in texts(scopes):
        entries: List[Tuple[str, str, int, int]] = list(text.entries())
        names: Dict[str, int] = {}
        for key, _, _, _ in entries:
            names[key] = names.get(key, 0) + 1
        when = scopes.when(text.file, text.node)
        if names.get(name) != 1 or not names.keys() <= present.keys() or when is None:
            continue
        likeness = sum(1 if same(present[key], written) else -1 for key, written, _, _ in entries)
        for key, written, line, column in entries:
            if key == name and same(value, written):
                yield likeness, when, "text", text.file.path, line, column
