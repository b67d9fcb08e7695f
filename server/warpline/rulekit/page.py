"""A rule's page: its module docstring, cut into sections."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Sections that every page has, in this order; "Example" and "Use instead" may come in several pairs.
REQUIRED = (
    "What it does",
    "Why is this slow",
    "Example",
    "Use instead",
    "Near misses",
    "Fix safety",
    "References",
)

_ANNOTATION = re.compile(r"[ \t]*#[>^] .*$", re.MULTILINE)
_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    summary: str  # the docstring's first line
    sections: tuple[tuple[str, str], ...]  # (heading, Markdown), in order

    def section(self, heading: str) -> str:
        """The text below a heading. Empty where the page lacks it."""
        return next((text for title, text in self.sections if title == heading), "")

    def examples(self) -> list[tuple[str, str | None]]:
        """``(annotated code, code of its "Use instead")`` of each pair, None where that is prose."""
        found: list[tuple[str, str | None]] = []
        for title, text in self.sections:
            if title == "Example":
                found += [(code, None) for code in _CODE.findall(text)]
            elif title == "Use instead" and found:
                codes = _CODE.findall(text)
                found[-1] = (found[-1][0], codes[0] if codes else None)
        return found

    def near_misses(self) -> list[str]:
        """Annotated code on which the rule stays silent."""
        return [
            code for title, text in self.sections if title == "Near misses" for code in _CODE.findall(text)
        ]

    def markdown(self) -> str:
        """The page for a reader: annotations of the examples left out."""
        parts = [f"# {self.name}", self.summary]
        parts += [f"## {title}\n\n{text}" for title, text in self.sections if title != "Near misses"]
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
