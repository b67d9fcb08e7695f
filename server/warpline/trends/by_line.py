"""The line of a trend. Named only if one line has most of the change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from statistics import median

from warpline.model import units
from warpline.model.report import Line
from warpline.trends.statistics import blocks, mann_kendall, slope
from warpline.wire.trend import Trend, Window

#: As for the steps: see ``said``.
LIKELY, ENOUGH, TESTED = 0.01, 8, 256
#: Of what the lines changed by, the line that is named has more than this share.
MOST = 0.5
#: A line that keeps less in a step is not what fills the memory.
LEAST_KEPT = 1024


def times(trend: Trend) -> list[tuple[Window, dict[tuple[str, int], float]]]:
    """Windows after which the lines of a step were recorded, with the host's time at each, in ns."""
    places = trend.places
    return [
        (one, {places[at]: float(ns) for at, ns in one.lines_ns if at < len(places)})
        for one in trend.windows
        if one.lines_ns
    ]


def drift(trend: Trend, change: float) -> str:
    """The line that drifts, after ": ", for steps that get slower (``change`` above 0) or faster; else
    empty."""
    found = times(trend)
    if len(found) < ENOUGH:
        return ""
    steps = blocks([float(one.step) for one, _ in found], TESTED)
    moved: dict[tuple[str, int], float] = {}
    for place in {place for _, at in found for place in at}:
        values = blocks([at.get(place, 0.0) for _, at in found], TESTED)
        by = slope(steps, values) * (steps[-1] - steps[0])
        if by * change > 0 and mann_kendall(values) < LIKELY:
            moved[place] = by
    if not moved:
        return ""
    place = max(moved, key=lambda one: (abs(moved[one]), one))
    if abs(moved[place]) <= MOST * abs(sum(moved.values())):
        return ""
    way = "more" if moved[place] > 0 else "less"
    return f": most of it at {_name(place)}, which takes {units.ms(abs(moved[place]) / 1e6)} {way} at the end"


def slow(trend: Trend, stretches: Sequence[tuple[int, int]]) -> str:
    """The line that was slow in slow stretches of steps; else empty. Of the steps whose lines were
    recorded in a stretch or right after it, the longest decides."""
    found = times(trend)
    ends = {end for _, end in stretches}
    begins = {begin for begin, _ in stretches}
    within = [at for one, at in found if _end(one) in ends or _end(one) in begins]
    usual = [at for one, at in found if _end(one) not in ends and _end(one) not in begins]
    if not within or len(usual) < ENOUGH:
        return ""
    longest = max(within, key=lambda at: sum(at.values()))
    more: dict[tuple[str, int], float] = {}
    for place, ns in longest.items():
        by = ns - median(at.get(place, 0.0) for at in usual)
        if by > 0:
            more[place] = by
    if not more:
        return ""
    place = max(more, key=lambda one: (more[one], one))
    if more[place] <= MOST * sum(more.values()):
        return ""
    return f": most of it at {_name(place)}, which took {units.ms(more[place] / 1e6)} more"


def keeper(lines: Sequence[Line]) -> str:
    """The line that kept most memory in the captured steps, after ": "; else empty."""
    most = max(lines, key=lambda line: line.kept_bytes, default=None)
    if most is None or most.kept_bytes < LEAST_KEPT:
        return ""
    place = _name((most.file, most.line))
    return f": in the captured steps {place} kept {units.size(most.kept_bytes)} a step"


def _end(window: Window) -> int:
    return window.step + len(window.steps_ns)


def _name(place: tuple[str, int]) -> str:
    return f"{PurePath(place[0]).name}:{place[1]}"
