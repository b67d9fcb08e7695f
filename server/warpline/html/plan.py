"""The plan: how long the step is after each fix, down to the floor."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.html.escaped import prose, text
from warpline.model.report import Finding, Plan
from warpline.view import plan as words


def table(plan: Plan | None, findings: Sequence[Finding]) -> str:
    """A row with a bar for the step as it is, each fix and the floor. Fixes lead to their ``findings``."""
    if plan is None:
        return "<p>There is no plan: no finding has a change that can be predicted.</p>"
    lengths = [plan.step_ms, *(one.step_ms for one in plan.steps), plan.floor_ms]
    targets = ["", *(one.finding for one in plan.steps), ""]
    shown = {finding.id for finding in findings}
    rows = []
    for row, length, finding in zip(words.rows(plan), lengths, targets, strict=True):
        width = 100 * length / plan.step_ms if plan.step_ms else 0.0
        what = prose(row.what)
        if finding in shown:  # one that gains nothing alone has no card
            what = f'<a href="#finding-{text(finding)}">{what}</a>'
        rows.append(
            f'<tr><td class="number">{text(row.step)}</td><td class="number">{text(row.gain)}</td>'
            '<td class="chart"><svg class="length" viewBox="0 0 100 10" preserveAspectRatio="none" '
            f'aria-hidden="true"><rect width="{width:.2f}" height="10"></rect></svg></td>'
            f"<td>{text(row.limit)}</td><td>{what}</td></tr>"
        )
    heads = "".join(f"<th>{head}</th>" for head in ("step", "gain", "", "then limited by", "fix"))
    return f'<div class="lines"><table class="plan"><tr>{heads}</tr>{"".join(rows)}</table></div>'
