"""Two runs side by side: the parts of each step, and the lines with a changed time."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.html import composition
from warpline.html.escaped import text
from warpline.model.report import Report
from warpline.view import units
from warpline.view.change import difference
from warpline.view.compare import Comparison, Pair
from warpline.view.text import printable

#: Lines shown: those that changed most.
_MOST = 60
#: A line's change below this share of the longer step is left out.
_LEAST = 0.002


@dataclass(frozen=True, slots=True)
class Against:
    """Another run, made before, to compare with."""

    name: str
    report: Report
    comparison: Comparison


def section(before: Against, after: Report) -> str:
    """The whole section, heading included."""
    said = (*before.comparison.summary, *before.comparison.notes)
    longest = max(before.report.steps.step_ms, after.steps.step_ms)
    pairs = [pair for pair in before.comparison.pairs if abs(pair.difference_ms) >= _LEAST * longest][:_MOST]
    widest = max((abs(pair.difference_ms) for pair in pairs), default=0.0)
    rows = "".join(_row(pair, before, widest) for pair in pairs)
    heads = "".join(
        f"<th>{head}</th>" for head in ("line", "before", "after", "change", "", "text", "source")
    )
    return (
        f'<section id="compare"><h2>Compared with {text(printable(before.name))}</h2>'
        + "".join(f"<p>{text(line)}</p>" for line in said)
        + composition.bar(before.report.composition, "before", longest)
        + composition.bar(after.composition, "after", longest)
        + f'<div class="lines"><table class="compare"><tr>{heads}</tr>{rows}</table></div></section>'
    )


def _row(pair: Pair, before: Against, widest: float) -> str:
    file, line = pair.after or pair.before or ("", 0)
    name = f"{before.comparison.names.get(file) or file}:{line}"
    code = (
        f'<code data-file="{text(file)}" data-line="{line}">{text(name)}</code>' if pair.after else text(name)
    )
    share = 50 * abs(pair.difference_ms) / widest if widest else 0.0
    left, kind = (50.0, "slower") if pair.difference_ms > 0 else (50.0 - share, "faster")
    box = f'<rect class="{kind}" x="{left:.2f}" width="{share:.2f}" height="10"></rect>'
    return (
        f'<tr><td>{code}</td><td class="number">{text(units.milliseconds(pair.before_ms))}</td>'
        f'<td class="number">{text(units.milliseconds(pair.after_ms))}</td>'
        f'<td class="number">{text(difference(pair.difference_ms))}</td>'
        '<td class="chart"><svg class="length" viewBox="0 0 100 10" preserveAspectRatio="none" '
        f'aria-hidden="true">{box}</svg></td>'
        f'<td>{pair.change}</td><td class="source">{text(pair.source)}</td></tr>'
    )
