"""A rule's page: its module docstring, cut into sections."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ANNOTATION = re.compile(r"[ \t]*#[>^] .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    summary: str  # the docstring's first line
    sections: tuple[tuple[str, str], ...]  # (heading, Markdown), in order

    def section(self, heading: str) -> str:
        """The text below a heading. Empty where the page lacks it."""
        return next((text for title, text in self.sections if title == heading), "")

    def markdown(self) -> str:
        """The page for a reader: annotations of the examples left out."""
        parts = [f"# {self.name}", self.summary]
        parts += [f"## {title}\n\n{text}" for title, text in self.sections]
        return without_annotations("\n\n".join(parts)) + "\n"


def without_annotations(code: str) -> str:
    """``code`` without ``#>`` and ``#^`` comments; lines that hold nothing else go."""
    kept = []
    for line in code.split("\n"):
        plain = _ANNOTATION.sub("", line)
        if plain.strip() or plain == line:
            kept.append(plain)
    return "\n".join(kept)


def parse_page(name: str, docstring: str) -> Page:
    """Cut a docstring of Markdown with ``##`` headings."""
    summary, *rest = re.split(r"^## (.+)$", docstring.strip(), flags=re.MULTILINE)
    headings, texts = rest[::2], rest[1::2]
    return Page(
        name, summary.strip(), tuple((h.strip(), t.strip()) for h, t in zip(headings, texts, strict=True))
    )
