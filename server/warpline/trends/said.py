"""A trend in a few lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from warpline.model import units
from warpline.model.report import Line
from warpline.trends import by_line
from warpline.trends.statistics import blocks, mann_kendall, outliers, slope, slope_interval
from warpline.wire.trend import Trend, Window

#: A trend is reported below this probability, if it moves the value by this share over the run: the least
#: gain that a finding has as well.
LIKELY, LEAST = 0.01, 0.01
#: Windows below which nothing is tested.
ENOUGH = 8
#: Values that the pairs of a test are made of; of more, medians of neighbours.
TESTED = 256


def notes(trend: Trend, lines: Sequence[Line] = ()) -> tuple[str, ...]:
    """Empty where no window was timed. ``lines``: the report's, which say what each keeps in a step."""
    windows = trend.windows
    if not windows:
        return ()
    times = [window.step_ns / 1e6 for window in windows]
    held = [float(window.memory_bytes) for window in windows]
    steps = windows[-1].step + len(windows[-1].steps_ns)
    in_windows = f"in {len(windows)} {'window' if len(windows) == 1 else 'windows'}"
    over = (
        f"over {steps} steps after the capture, {in_windows}: step {units.ms(median(times))} "
        f"({units.ms(min(times))} to {units.ms(max(times))}), memory "
        f"{units.size(held[0])} at the start, {units.size(held[-1])} at the end"
    )
    if len(windows) < ENOUGH:
        return (f"{over}; at least {ENOUGH} windows are needed to test for a trend",)
    steady = _steadiest(windows)
    return (over + _changed(steady), *_drift(trend, steady), *_growth(windows, lines), *_slow(trend))


class _Steps(NamedTuple):
    """Step times over the run, in ns, at most ``TESTED`` of them."""

    at: list[float]  # number of the first step of each
    times: list[float]
    of: str  # what they are, where it has to be said

    @property
    def share(self) -> float:
        """What a slope is multiplied by for the change over the run, as a share of the step."""
        return (self.at[-1] - self.at[0]) / median(self.times)


def _steadiest(windows: Sequence[Window]) -> _Steps:
    """The windows' step times, or the means of all steps between them, whichever differ less from one to the
    next: a mean of hundreds of steps has less noise than five, unless epochs or evaluations lie in some."""
    chosen, of = [(float(one.step), one.step_ns) for one in windows], ""
    every = [(float(one.step), one.between_ns) for one in windows if one.between_ns is not None]
    if len(every) >= ENOUGH and _jitter(every) < _jitter(chosen):
        chosen, of = every, ", by the mean of all steps between two windows"
    at, times = (blocks(each, TESTED) for each in zip(*chosen, strict=True))
    return _Steps(at, times, of)


def _jitter(times: Sequence[tuple[float, float]]) -> float:
    values = [value for _, value in times]
    return median(abs(after - before) for before, after in pairwise(values)) / median(values)


def _changed(steady: _Steps) -> str:
    low, high = (each * steady.share for each in slope_interval(steady.at, steady.times))
    if not math.isfinite(high - low):
        return "; too few windows to say how much a step's time changed"
    by = f"{units.percent(low)} to {units.percent(high)}"
    return f"; a step's time changed by {by} over the run (95 %{steady.of})"


def _drift(trend: Trend, steady: _Steps) -> Iterable[str]:
    chance, change = mann_kendall(steady.times), slope(steady.at, steady.times) * steady.share
    if chance < LIKELY and abs(change) >= LEAST:
        way = "slower" if change > 0 else "faster"
        where = by_line.drift(trend, change)
        yield f"steps get {way}: by {units.percent(abs(change))} over the run {_tested(chance)}{where}"


def _tested(chance: float) -> str:
    return f"(Mann-Kendall, p = {chance:.1g})"


def _growth(windows: Sequence[Window], lines: Sequence[Line]) -> Iterable[str]:
    """Growth in the later half alone: what grows only at first is not a leak."""
    some = windows[len(windows) // 2 :]
    steps = blocks([float(one.step) for one in some], TESTED)
    held = blocks([float(one.memory_bytes) for one in some], TESTED)
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
