"""Text as both Python and editors count its lines: only CR LF, LF and CR end a line.

``str.splitlines`` also breaks at form feeds, U+0085, U+2028 and five others, and then every line
after one of them would be off by one.
"""

from __future__ import annotations

import re

_END = re.compile(r"\r\n|\r|\n")


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


def content(line: str) -> str:
    """The line without its end."""
    return line.rstrip("\r\n")


def key(line: str) -> str:
    """What a line says: white space and a trailing comment do not change what it costs."""
    comment = line.find("#")
    # A '#' after a quote may be part of a string; then the comment counts as code.
    if comment >= 0 and '"' not in line[:comment] and "'" not in line[:comment]:
        line = line[:comment] or line
    return " ".join(line.split())
