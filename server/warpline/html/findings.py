"""Findings as cards: what, where, what it gains, the change as a diff, and the rule's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from markdown_it import MarkdownIt

from warpline.html.escaped import prose, text
from warpline.model.report import Finding
from warpline.rules import names as rule_names
from warpline.rules import page
from warpline.view import findings
from warpline.view.diff import diff

_MOST_LINES = 200  # of a diff


def cards(findings: Sequence[Finding], sources: Mapping[str, str], names: Mapping[str, str]) -> str:
    """The cards in order; one sentence where there are no findings."""
    shown = [_card(finding, sources, names) for finding in findings]
    return "\n".join(shown) if shown else "<p>No rule found anything to improve here.</p>"


def _card(finding: Finding, sources: Mapping[str, str], names: Mapping[str, str]) -> str:
    said = findings.summary(finding, names)
    rule = f'<a href="#rule-{text(said.rule)}">{text(said.rule)}</a>'
    if finding.rule not in rule_names():
        rule = text(said.rule)
    place = _place(finding.file, finding.line, said.place)
    return (
        f'<article class="finding {text(said.severity)}" id="finding-{text(finding.id)}">'
        f"<p>{place} <b>{rule}</b></p><p>{prose(said.message)}</p>"
        + "".join(f'<p class="soft">{prose(line)}</p>' for line in said.details if line not in said.fixes)
        + "".join(
            _fix(words, diff(fix.edits, sources, names), first=number == 0)
            for number, (fix, words) in enumerate(zip(finding.fixes, said.fixes, strict=True))
        )
        + "</article>"
    )


def _place(file: str, line: int, shown: str) -> str:
    """A button where the script makes it one; plain text without it."""
    return f'<code data-file="{text(file)}" data-line="{line}">{text(shown)}</code>'


def _fix(title: str, lines: Sequence[str], first: bool) -> str:
    """Folded away but for the ``first``. One that is to be made by hand has no lines."""
    if not lines:
        return f'<p class="soft">{prose(title)}</p>'
    kinds = {"+": "added", "-": "gone", "@": "soft"}
    body = "\n".join(
        f'<span class="{kinds[line[:1]]}">{text(line)}</span>' if line[:1] in kinds else text(line)
        for line in lines[:_MOST_LINES]
    )
    more = f"\n… {len(lines) - _MOST_LINES} more lines" if len(lines) > _MOST_LINES else ""
    opened = " open" if first else ""
    return f'<details{opened}><summary>{prose(title)}</summary><pre class="diff">{body}{more}</pre></details>'


def rules(findings: Sequence[Finding]) -> str:
    """The texts of the rules that found something, each once, folded away."""
    known = [name for name in dict.fromkeys(finding.rule for finding in findings) if name in rule_names()]
    return "\n".join(
        f'<details class="rule" id="rule-{text(name)}"><summary>{text(name)}</summary>{_text(name)}</details>'
        for name in known
    )


@cache
def _text(name: str) -> str:
    """A rule's page in HTML: ours, so its links are kept; HTML inside of it is not."""
    reader = MarkdownIt("commonmark", {"html": False})
    made: str = reader.render(page(name).markdown().partition("\n")[2])
    return made
