"""How trials of fixes are shown: what was tried and the verdict on it, and below that what was measured: each
beside the plain steps that it was paired with."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from warpline.measure.contest import Outcome
from warpline.measure.results import Results
from warpline.measure.verdict import ONCE
from warpline.terminal.console import paged
from warpline.view import units

#: An interval from one end to so many times that is none: two rounds that differ make one.
WIDE = 20.0
#: Headings, and how wide what is under them is.
_COLUMNS = {
    "plain": 7,
    "step ms": 7,
    "measured": 8,
    "95 % interval": 13,
    "predicted": 9,
    "loss drift": 10,
    "memory": 6,
}


def show(
    outcomes: Sequence[Outcome],
    results: Results,
    predicted: dict[str, float],
    notes: Sequence[str],
    *,
    proposed: bool = False,
) -> None:
    """Print the table. ``predicted``: speed-ups by candidate key, where there are any. ``proposed``: there
    were fixes to try, also where none of them was timed.
    """
    with paged() as out:
        out.print(
            Text(f"The script without changes: {units.ms(results.baseline_step_ms)} a step", style="bold")
        )
        if outcomes:
            out.print(Text(_row(tuple(_COLUMNS)), style="dim"))
        for one in outcomes:
            out.print(Text(one.candidate.title), _verdict(one), sep=": ")
            if row := _row(_numbers(one, predicted)):
                out.print(Text(row))
        out.print(Text(_summary(outcomes, results, proposed), style="bold"))
        for note in notes:
            out.print(Text(f"Note: {note}", style="dim"))


def ending(ended: Sequence[str], budget_s: float, more: str) -> list[str]:
    """One sentence that says why the search ended early, and what ``more`` takes; empty where it was
    finished."""
    if "interrupted" in ended:
        return ["interrupted: these are the results until then"]
    if ended:
        return [f"the time budget of {units.seconds(budget_s)} (--budget) ended first: {more}"]
    return []


def _row(cells: Sequence[str]) -> str:
    return "  ".join(
        f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True)
    ).rstrip()


def _numbers(one: Outcome, predicted: dict[str, float]) -> tuple[str, ...]:
    seen = one.measured
    expected = predicted.get(one.candidate.key)
    said = f"{expected:.2f}" if expected is not None else ""
    if seen is None:
        return ("", "", "", "", said, "", "")
    bounded = seen.low > 0 and seen.high < WIDE * seen.low
    return (
        units.milliseconds(one.baseline_step_ms),
        units.milliseconds(one.step_ms) if one.step_ms is not None else "",
        f"{seen.speedup:.2f}" if one.reason != ONCE else "",
        units.interval(seen.low, seen.high) if bounded else "",
        said,
        f"{seen.loss_drift:.1g}" if seen.loss_drift is not None else "",
        f"{seen.memory_ratio:.2f}" if seen.memory_ratio is not None else "",
    )


def _verdict(one: Outcome) -> Text:
    return Text(f"kept: {one.reason}" if one.kept else one.reason, style="green" if one.kept else "")


def _summary(outcomes: Sequence[Outcome], results: Results, proposed: bool) -> str:
    if not outcomes and not proposed:
        return "There is no fix to try."
    if all(one.untimed for one in outcomes):
        return "No fix was timed."
    if not results.best.fixes:
        undecided = any(one.undecided for one in outcomes)
        return "No measurable gain so far." if undecided else "No change has a measurable gain."
    best = next(one for one in outcomes if one.kept and one.candidate.fixes == results.best.fixes)
    return f"Best: {best.candidate.title}, {units.gain(results.best.speedup)}"
