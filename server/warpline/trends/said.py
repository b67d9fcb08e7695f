"""A trend in a few lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from warpline.model import units
from warpline.model.report import Line
from warpline.trends import by_line
from warpline.trends.statistics import mann_kendall, outliers, slope
from warpline.wire.trend import Trend, Window

#: A trend is reported below this probability, if it moves the value by this share over the run: the least
#: gain that a finding has as well.
LIKELY, LEAST = 0.01, 0.01
#: Windows below which nothing is tested.
ENOUGH = 8
#: Windows that the pairs of a test are made of; of more every k-th is taken.
TESTED = 256


def notes(trend: Trend, lines: Sequence[Line] = ()) -> tuple[str, ...]:
    """Empty where no window was timed. ``lines``: the report's, which say what each keeps in a step."""
    windows = trend.windows
    if not windows:
        return ()
    times = [window.step_ns / 1e6 for window in windows]
    held = [float(window.memory_bytes) for window in windows]
    steps = windows[-1].step + len(windows[-1].steps_ns)
    over = (
        f"over {steps} steps after the capture, in {len(windows)} windows"
        f": step {units.ms(median(times))} ({units.ms(min(times))} to {units.ms(max(times))}), memory "
        f"{units.size(held[0])} at the start, {units.size(held[-1])} at the end"
    )
    if len(windows) < ENOUGH:
        return (f"{over}; at least {ENOUGH} windows are needed to test for a trend",)
    return (over, *_drift(trend), *_growth(windows, lines), *_slow(trend))


def _thinned(windows: Sequence[Window]) -> Sequence[Window]:
    return windows[:: -(-len(windows) // TESTED)]


def _drift(trend: Trend) -> Iterable[str]:
    some = _thinned(trend.windows)
    steps, times = [float(one.step) for one in some], [one.step_ns for one in some]
    chance = mann_kendall(times)
    change = slope(steps, times) * (steps[-1] - steps[0]) / median(times)
    if chance < LIKELY and abs(change) >= LEAST:
        way = "slower" if change > 0 else "faster"
        where = by_line.drift(trend, change)
        yield f"steps get {way}: by {units.percent(abs(change))} over the run {_tested(chance)}{where}"


def _tested(chance: float) -> str:
    return f"(Mann-Kendall, p = {chance:.1g})"


def _growth(windows: Sequence[Window], lines: Sequence[Line]) -> Iterable[str]:
    """Growth in the later half alone: what grows only at first is not a leak."""
    some = _thinned(windows[len(windows) // 2 :])
    steps, held = [float(one.step) for one in some], [float(one.memory_bytes) for one in some]
    chance, rate = mann_kendall(held), slope(steps, held)
    if chance < LIKELY and rate * (steps[-1] - steps[0]) >= LEAST * median(held):
        yield (
            f"memory keeps growing: {units.size(1000 * rate)} per 1000 steps in the second half of "
            f"the run {_tested(chance)}{by_line.keeper(lines)}"
        )


def _slow(trend: Trend) -> Iterable[str]:
    windows = trend.windows
    for what, found in (
        ("steps", [(one.step, one.step + len(one.steps_ns), one.step_ns) for one in windows]),
        (
            "the code between two windows",
            [
                (before.step + len(before.steps_ns), after.step, after.between_ns)
                for before, after in pairwise(windows)
                if after.between_ns is not None
            ],
        ),
    ):
        values = [value for _, _, value in found]
        middle = median(values)
        slow = [at for at in outliers(values) if values[at] >= (1 + LEAST) * middle]
        if not slow:
            continue
        most = max(slow, key=values.__getitem__)
        begin, end, value = found[most]
        yield (
            f"{what}: {len(slow)} of {len(values)} slow (modified z-score above 3.5); the slowest, steps "
            f"{begin} to {end}, took {units.ms(value / 1e6)} a step, "
            f"{units.speedup(value / middle)} the median{by_line.slow(trend, [found[at][:2] for at in slow])}"
        )
