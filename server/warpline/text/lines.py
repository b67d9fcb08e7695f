"""Lines of Python source: only CR LF, LF and CR end one, for Python and for editors alike.

``str.splitlines`` also breaks at form feeds, U+0085, U+2028 and five others, and then every line
after one of them would be off by one. Nothing else splits source text.
"""

from __future__ import annotations

import re

_END = re.compile(r"\r\n|\r|\n")
#: Up to a comment: anything but quotes, and whole strings of one line.
_CODE = re.compile(r"""(?:[^#'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*""")


def split(text: str) -> list[str]:
    """The lines with their ends; after a final line end comes one more, empty, line (as LSP counts)."""
    if "\r" not in text:
        parts = text.split("\n")
        last = parts.pop()
        return [part + "\n" for part in parts] + [last]
    lines, start = [], 0
    for end in _END.finditer(text):
        lines.append(text[start : end.end()])
        start = end.end()
    lines.append(text[start:])
    return lines


def lines_of(text: str) -> list[str]:
    """The lines without their ends; as many as :func:`split` makes."""
    return _END.split(text) if "\r" in text else text.split("\n")


def line_at(text: str | None, number: int) -> str:
    """Line ``number`` (from 1) without its end; empty outside the text."""
    found = lines_of(text or "")
    return found[number - 1] if 0 < number <= len(found) else ""


def starts(text: str) -> list[int]:
    """Offset of each line's first character."""
    return [0, *(match.end() for match in _END.finditer(text))]


def content(line: str) -> str:
    """The line without its end."""
    return line.rstrip("\r\n")


def key(line: str) -> str:
    """What a line says: white space and a trailing comment do not change what it costs."""
    if "#" in line and '"""' not in line and "'''" not in line:
        code = _CODE.match(line)
        end = code.end() if code is not None else 0
        # Where the scan ended at an open quote, '#' may be part of a string: it counts as code.
        if line[end : end + 1] == "#" and line[:end].strip():
            line = line[:end]
    return " ".join(line.split())
