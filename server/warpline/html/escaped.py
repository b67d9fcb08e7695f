"""Escapes text from a run for HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from warpline.view.text import printable


def text(value: str) -> str:
    """Escaped for text and for attributes in quotes, without control and direction characters."""
    return escape(printable(value))


def listed(heading: str, lines: Iterable[str]) -> str:
    """A heading and its list; nothing where there are no lines."""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h2>{heading}</h2>\n<ul>{items}</ul>" if items else ""
