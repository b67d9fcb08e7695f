"""Escapes text from a run for HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from warpline.view.text import printable

_CODE = re.compile("`([^`]+)`")


def text(value: str) -> str:
    """Escaped for text and for attributes in quotes, without control and direction characters."""
    return escape(printable(value))


def prose(value: str) -> str:
    """The same, with what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", text(value))


def listed(heading: str, lines: Iterable[str]) -> str:
    """A heading and its list; nothing where there are no lines."""
    items = "".join(f"<li>{prose(line)}</li>" for line in lines)
    return f"<h2>{heading}</h2>\n<ul>{items}</ul>" if items else ""
