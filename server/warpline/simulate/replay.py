"""Replays the timeline: a discrete-event simulation of one host and its streams.

A launch enters its stream's queue. The kernel starts once the launch has arrived and two kernels have ended:
the one before it in the queue, and the one that it waits for in another stream
(:mod:`warpline.simulate.waits`). The host continues at once, unless the queue is full (1024 launches, CUDA's
own depth) or the call waits: for all work, or for what was queued before an event. The model follows H. Zhu
et al., "Daydream: accurately estimating the efficacy of optimizations for DNN training", USENIX ATC 2020; the
loader's queue and the order of events by the host's lines are our additions.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from warpline.model import costs
from warpline.simulate.timeline import LAUNCH, LOADER, SYNC, WORK, Timeline
from warpline.simulate.waits import Kernel
from warpline.trace.columns import Bools, Floats

QUEUE_DEPTH = 1024
#: Passes over the window; the first fills the queues, the rest are the steady state.
PASSES = 3

#: Work of the host since the row before, the segment's kind, its first kernel and that of the next segment,
#: whether it begins a batch, records an event, waits for an event.
_Row = tuple[float, int, int, int, bool, bool, bool]


@dataclass(frozen=True, slots=True)
class Feed:
    """Batches loaded by other processes. ``period_ns``: time between two batches, over all workers.

    At most ``ahead`` are prefetched. Taking one costs the host ``take_ns``; loading one takes
    ``cost_ns`` of cores' time.
    """

    period_ns: float
    ahead: int
    take_ns: float
    cost_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Scales that bring profiled durations to the unprofiled step's, and the device's own delays."""

    host: float = 1.0
    device: float = 1.0
    #: From the end of the launch call to the start of the kernel, on an idle stream.
    latency_ns: float = costs.value("launch-latency-ns")
    gap_ns: float = costs.value("kernel-gap-ns")  # between two queued kernels of one stream
    sync_ns: float = costs.value("sync-ns")  # a synchronization with an idle device


def replay(timeline: Timeline, clock: Clock, feed: Feed | None = None) -> float:
    """The step's time in nanoseconds."""
    _, marks = _played(timeline, clock, feed, PASSES)
    return (marks[-1] - marks[0]) / (PASSES - 1) / timeline.steps


def host_done(timeline: Timeline, clock: Clock, feed: Feed | None = None) -> float:
    """When the host finishes ``timeline``, in nanoseconds from its start. The device is idle at the start."""
    return _played(timeline, clock, feed, 1)[0]


def _played(timeline: Timeline, clock: Clock, feed: Feed | None, passes: int) -> tuple[float, list[float]]:
    """When the host finished, and when host and device finished each pass."""
    rows, tail = _rows(timeline, timeline.host_ns * clock.host, feed)
    if not rows:
        return tail * passes, [tail * (at + 1) for at in range(passes)]
    kernel_ns = (timeline.kernel_ns * clock.device).tolist()
    streams, blocking = timeline.stream.tolist(), timeline.blocking.tolist()
    keys = list(zip(streams, timeline.kernel_start.tolist(), strict=True)) if timeline.holds else []
    ended: dict[Kernel, float] = {}
    now, marks = 0.0, []
    free: dict[int, float] = {}
    queued: dict[int, deque[float]] = {}
    ready = 0.0
    recorded = 0.0  # when the work before the last recorded event is done
    ahead = max(1, feed.ahead) if feed is not None else 1
    taken = deque([0.0] * ahead, maxlen=ahead)
    for _ in range(passes):
        for work, kind, first, last, begin, records, awaits in rows:
            now += work
            if kind == LAUNCH:
                for at in range(first, last):
                    stream = streams[at]
                    behind = free.get(stream, -1e18)
                    queue = queued.setdefault(stream, deque(maxlen=QUEUE_DEPTH))
                    if len(queue) == QUEUE_DEPTH:
                        now = max(now, queue[0])
                    begun = max(now + clock.latency_ns, behind + clock.gap_ns)
                    if keys:
                        hold = timeline.holds.get(keys[at])
                        if hold is not None:
                            other = max(now, behind) if hold.after is None else ended.get(hold.after, -1e18)
                            begun = max(begun, other + hold.delay_ns)
                        ended[keys[at]] = begun + kernel_ns[at]
                    queue.append(begun)
                    free[stream] = begun + kernel_ns[at]
                    if blocking[at]:
                        now = max(now, free[stream])
            elif kind == SYNC:
                # The trace does not say which event: at most the last one that was recorded.
                done = recorded if awaits else max(free.values(), default=0.0)
                now = max(now + clock.sync_ns * clock.host, done)
            elif begin and feed is not None:
                ready = max(ready + feed.period_ns, taken[0])
                now = max(now, ready) + feed.take_ns
                taken.append(now)
            if records:
                recorded = max(free.values(), default=0.0)
        now += tail
        marks.append(max(now, max(free.values(), default=0.0)))
    return now, marks


def _rows(timeline: Timeline, host: Floats, feed: Feed | None) -> tuple[list[_Row], float]:
    """The segments at which more happens than work of the host, and the work after the last of them."""
    stops = (timeline.kind != WORK) & ((timeline.kind != LOADER) | (feed is not None))
    if timeline.awaits.any():
        stops = stops | timeline.records
    events = np.flatnonzero(stops)
    if not len(events):
        return [], float(host.sum())
    waits = timeline.kind == SYNC
    if feed is not None:
        waits = waits | (timeline.kind == LOADER)
    total = np.concatenate([[0.0], np.cumsum(np.where(waits, 0.0, host))])
    before = np.diff(np.concatenate([[0.0], total[events]]))
    tail = float(total[-1] - total[events[-1]])
    begins = _batch_begins(timeline) if feed is not None else np.zeros(len(host), bool)
    columns = (
        *(before, timeline.kind[events], timeline.first[events], timeline.first[events + 1]),
        *(begins[events], timeline.records[events], timeline.awaits[events]),
    )
    return list(zip(*(column.tolist() for column in columns), strict=True)), tail


def _batch_begins(timeline: Timeline) -> Bools:
    """The first segment of each stretch in which the host is in the loader."""
    inside = timeline.kind == LOADER
    found: Bools = inside & ~np.concatenate([[False], inside[:-1]])
    return found
