"""The kernel that each busy moment of the device belongs to.

With one stream, this is the kernel that runs. If several run at once, the critical path is followed
backwards: from the kernel that ended last to the kernel that it waited for, and so on. Work off that path
costs nothing, and no moment counts twice.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from warpline.attribution.timeline import complement, union
from warpline.trace.columns import Ints, Kernels
from warpline.trace.streams import one_before

#: A kernel that starts at most this long after another one ended was waiting for it. The delay is about 1 us
#: within a stream, and a few microseconds with an event between streams.
HANDOVER_NS = 5_000

Owned = tuple[Ints, Ints, Ints]  # start_ns, end_ns, kernel


def busy(kernels: Kernels, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """Disjoint sorted spans of the window in which any device worked."""
    return union(np.clip(kernels.start_ns, *window), np.clip(kernels.end_ns, *window))


def idle(kernels: Kernels, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """Start and end (ns) of the gaps in which no kernel or copy runs."""
    return complement(*busy(kernels, window), window)


def owners(kernels: Kernels, window: tuple[int, int]) -> Owned:
    """Disjoint sorted spans with the kernel on the critical path; together they are :func:`busy`."""
    start, end = np.clip(kernels.start_ns, *window), np.clip(kernels.end_ns, *window)
    rows = np.flatnonzero(end > start)
    start, end = start[rows], end[rows]
    if not len(rows):
        return rows, rows, rows
    reach = np.maximum.accumulate(end)
    fresh = np.ones(len(rows), bool)
    fresh[1:] = start[1:] >= reach[:-1]
    cluster = np.cumsum(fresh) - 1
    alone = np.bincount(cluster)[cluster] == 1
    parts: list[Owned] = [(start[alone], end[alone], rows[alone])]
    crowded = np.flatnonzero(~alone)
    if len(crowded):
        stream = kernels.device_stream[rows]
        before = one_before(stream, start, end)
        cuts = np.flatnonzero(np.diff(cluster[crowded])) + 1
        for members in np.split(crowded, cuts):
            columns = (column[members].tolist() for column in (start, end, stream, before))
            cluster_of = Cluster(*columns)
            spans, chosen = cluster_of.critical_path()
            parts.append((spans[:, 0], spans[:, 1], rows[members[chosen]]))
    begin, until, kernel = (np.concatenate(column) for column in zip(*parts, strict=True))
    by = np.argsort(begin, kind="stable")
    return begin[by], until[by], kernel[by]


class Cluster:
    """Kernels that overlap without a gap, sorted by start; times in ns. ``before``: end of the previous
    kernel in the same stream, which may be outside the cluster."""

    def __init__(self, start: list[int], end: list[int], stream: list[int], before: list[int]) -> None:
        self.start, self.end, self.stream, self.before = start, end, stream, before
        self.by_end = sorted(range(len(end)), key=end.__getitem__)
        self.ends = [end[at] for at in self.by_end]

    def critical_path(self) -> tuple[Ints, Ints]:
        """Spans (start, end) and their kernels, from the last end backwards to the first start."""
        spans: list[tuple[int, int]] = []
        chosen: list[int] = []
        now = self.by_end[-1]
        time = self.end[now]
        while now >= 0:
            if self.end[now] < time:
                # The gap between two kernels of the path, in which other streams work, belongs to the later
                # one.
                spans[-1] = (self.end[now], spans[-1][1])
                time = self.end[now]
            spans.append((self.start[now], time))
            chosen.append(now)
            time = self.start[now]
            if time - HANDOVER_NS <= self.before[now] < self.start[0]:
                # It waited for a kernel before the cluster: the gap belongs to it, as above.
                spans[-1] = (self.start[0], spans[-1][1])
                break
            now = self._waited_for(now, time)
        return np.array(spans, np.int64).reshape(-1, 2), np.array(chosen, np.int64)

    def _waited_for(self, now: int, time: int) -> int:
        """The kernel that ``now``, which began at ``time``, waited for; else one that ran meanwhile; else
        -1."""
        at = bisect_right(self.ends, time)
        latest = -1
        while at > 0 and self.ends[at - 1] >= time - HANDOVER_NS:
            at -= 1
            other = self.by_end[at]
            if self.start[other] < time and other != now:
                if self.stream[other] == self.stream[now]:
                    return other
                latest = other if latest < 0 else latest
        if latest >= 0:
            return latest
        # No kernel had just ended: ``now`` was launched late. A kernel of another stream had the device.
        begun = range(bisect_right(self.start, time - 1) - 1, -1, -1)
        return next((at for at in begun if self.end[at] > time), -1)
