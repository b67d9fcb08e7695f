"""Findings and budgets as workflow commands, which GitHub shows at the lines of a pull request.

The commands' form: docs.github.com, "Workflow commands for GitHub Actions". GitHub shows ten errors, ten
warnings and ten notices of a step and drops the rest, so the most important come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpline.check.judge import Verdict
from warpline.check.sarif import relative
from warpline.model.report import Report
from warpline.view.text import printable

MOST = 10
_OF_SEVERITY = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}
_OF_OUTCOME = {"exceeded": "error", "unsure": "warning", "unknown": "warning"}


def lines(report: Report, verdicts: Sequence[Verdict], root: Path) -> list[str]:
    """One command each, at most ``MOST`` of a kind; budgets before findings, findings in their order."""
    made = [
        (_OF_OUTCOME[one.outcome], one.file, one.line, "budget", one.message)
        for one in verdicts
        if one.outcome != "held"
    ]
    made += [
        (_OF_SEVERITY[one.severity], one.file, one.line, one.rule, one.message) for one in report.findings
    ]
    left = {"error": MOST, "warning": MOST, "notice": MOST}
    found = []
    for kind, file, line, title, message in made:
        if left[kind]:
            left[kind] -= 1
            place = f"file={_property(relative(file, root) or file)},line={max(1, line)}"
            text = f"::{kind} {place},title={_property(f'warpline: {title}')}::{_message(printable(message))}"
            found.append(text)
    return found


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(printable(text)).replace(":", "%3A").replace(",", "%2C")
