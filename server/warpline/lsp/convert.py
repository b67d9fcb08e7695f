"""Between our places (0-based line, column in code points, path) and LSP's (position, URI).

The only module that makes a Position. Columns are counted in the encoding negotiated with the client.
"""

from __future__ import annotations

import os

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from warpline.text.lines import content

#: A notebook's cell has no path: its URI stands for one.
CELL = "vscode-notebook-cell:"


def uri(path: str) -> str:
    """The file URI of an absolute path; the URI of a cell."""
    return path if path.startswith(CELL) else from_fs_path(path) or ""


def path(uri: str) -> str | None:
    """The path of a file URI, links not resolved; of a cell its URI; None for untitled: and the like."""
    if uri.startswith(CELL):
        return uri
    found = to_fs_path(uri)
    return os.path.normpath(found) if found else None


def on_disk(path: str) -> str:
    """The path itself; for a cell that of its notebook."""
    if not path.startswith(CELL):
        return path
    return os.path.normpath(to_fs_path(f"file:{path[len(CELL) :].partition('#')[0]}") or "/")


class Codec:
    """Columns: code points on our side, units of ``encoding`` on the client's."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self.encoding = encoding

    def units(self, line: str, column: int) -> int:
        """The client's column for ours; past the end of the line it is the end."""
        text = content(line)[:column]
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(1 for letter in text if letter > "\uffff")

    def column(self, line: str, character: int) -> int:
        """Our column for the client's; inside a character it is the character's beginning."""
        text = content(line)
        if self.encoding == "utf-32" or text.isascii():
            return min(max(character, 0), len(text))
        units = 0
        for column, letter in enumerate(text):
            units += self.units(letter, 1)
            if units > character:
                return column
        return len(text)

    def position(self, line: int, column: int, text: str) -> types.Position:
        """``text``: the line that the position is in."""
        return types.Position(line=line, character=self.units(text, column))

    def span(self, start: tuple[int, int], end: tuple[int, int], lines: list[str]) -> types.Range:
        """A range from (line, column) to (line, column); a line past the end is the end of the text."""
        return types.Range(start=self._at(start, lines), end=self._at(end, lines))

    def whole_line(self, line: int, text: str) -> types.Range:
        """What is written on a line, without its indentation."""
        words = content(text)
        indent = len(words) - len(words.lstrip())
        end = len(words.rstrip())
        return types.Range(
            start=self.position(line, min(indent, end), text), end=self.position(line, end, text)
        )

    def _at(self, place: tuple[int, int], lines: list[str]) -> types.Position:
        line, column = place
        if line >= len(lines):
            line = len(lines) - 1
            column = len(lines[line])
        return self.position(line, column, lines[line])


def line_start(line: int) -> types.Position:
    """The beginning of a line, which is 0 in every encoding."""
    return types.Position(line=line, character=0)


def empty_range(line: int) -> dict[str, dict[str, int]]:
    """The beginning of a line as a range, in JSON. Its column is 0 in every encoding."""
    place = {"line": line, "character": 0}
    return {"start": place, "end": place}
