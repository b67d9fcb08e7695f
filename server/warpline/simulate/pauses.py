"""Garbage collections within the captured steps: time of the host's that no scale of the host explains.

A full collection every few steps makes one captured step many times as long as the others. The others show
how fast the host and the device are, and the timed steps what the collections add to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from warpline.model import steady
from warpline.simulate.replay import Clock, Feed, replay
from warpline.simulate.timeline import LAUNCH, WORK, Timeline
from warpline.trace.columns import Floats, Trace

#: The collections that were captured explain the timed steps if they come as often there, within this factor.
#: Few are captured, so one more or less makes much of a difference.
_OFTEN = 4.0
_CLOSE = 1e-3
_HALVINGS = 24


def pauses(trace: Trace, timeline: Timeline) -> Floats:
    """What the garbage collector took of each segment, in ns."""
    own = (timeline.kind == WORK) | (timeline.kind == LAUNCH)
    edges = np.append(timeline.start_ns, trace.window_ns[1])
    found = np.zeros(len(timeline.start_ns))
    for begin, end in trace.facts.gc_ns:
        found += np.maximum(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0)
    return np.where(own, np.minimum(found, timeline.host_ns), 0.0)


def between(trace: Trace, step_ns: float) -> float:
    """The timed step without collections. Those that come in most steps, or while the device has work, are
    left in."""
    timed = trace.manifest.timed_ns
    if not timed:
        return step_ns
    collected_ns = trace.facts.gc_timed_ns - steady.left_out_ns(trace.manifest, trace.facts)
    return min(step_ns, max(step_ns - collected_ns / len(timed), float(np.median(timed))))


def added(
    timeline: Timeline, collecting: Floats, clock: Clock, feed: Feed | None, step_ns: float
) -> Timeline | None:
    """``timeline`` with its collections, as often as makes the step ``step_ns``. None where those that were
    captured do not explain it."""

    def made(often: float) -> Timeline:
        return replace(timeline, host_ns=timeline.host_ns + collecting * often / clock.host)

    often = _solved(lambda often: replay(made(often), clock, feed), step_ns)
    found = made(often)
    return found if abs(replay(found, clock, feed) - step_ns) < _CLOSE * step_ns else None


def _solved(value: Callable[[float], float], wanted: float) -> float:
    low, high = 1 / _OFTEN, _OFTEN
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) < wanted else (low, middle)
    return (low + high) / 2
