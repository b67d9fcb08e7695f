"""Which piece of device work each busy moment belongs to.

With one stream that is plain. Where several run at once, time is walked backwards along the
critical path: from what finished last to what it had waited for, and so on. Work beside that path
costs nothing, and no moment is counted twice.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from warpline.attribution.timeline import complement, union
from warpline.trace.columns import Ints, Kernels

#: A kernel that starts this long after another ended was waiting for it. Streams hand over in about
#: 1 us, waits for events in a few.
HANDOVER_NS = 5_000

Owned = tuple[Ints, Ints, Ints]  # start_ns, end_ns, kernel


def busy(kernels: Kernels, window: tuple[int, int]) -> tuple[Ints, Ints]:
    """Disjoint sorted spans of the window in which any device worked."""
    return union(np.clip(kernels.start_ns, *window), np.clip(kernels.end_ns, *window))


def idle(kernels: Kernels, window: tuple[int, int]) -> tuple[Ints, Ints]:
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
        stream = kernels.stream[rows] + (kernels.device[rows] << 32)
        cuts = np.flatnonzero(np.diff(cluster[crowded])) + 1
        for members in np.split(crowded, cuts):
            spans, chosen = _walk(start[members].tolist(), end[members].tolist(), stream[members].tolist())
            parts.append((spans[:, 0], spans[:, 1], rows[members[chosen]]))
    begin, until, kernel = (np.concatenate(column) for column in zip(*parts, strict=True))
    by = np.argsort(begin, kind="stable")
    return begin[by], until[by], kernel[by]


def _walk(start: list[int], end: list[int], stream: list[int]) -> tuple[Ints, Ints]:
    """One cluster of overlapping work, from its last end backwards to its first start."""
    by_end = sorted(range(len(end)), key=end.__getitem__)
    ends = [end[at] for at in by_end]
    now = by_end[-1]
    time = end[now]
    spans, chosen = [], []
    while True:
        begun = start[now]
        if time > begun:
            spans.append((begun, time))
            chosen.append(now)
            time = begun
        following = _waited_for(now, time, start, end, stream, by_end, ends)
        if following < 0:
            break
        now = following
        if end[now] < time:
            # A hand-over gap that other streams fill belongs to the work it led to.
            spans[-1] = (end[now], spans[-1][1])
            time = end[now]
    return np.array(spans, np.int64).reshape(-1, 2), np.array(chosen, np.int64)


def _waited_for(
    now: int,
    time: int,
    start: list[int],
    end: list[int],
    stream: list[int],
    by_end: list[int],
    ends: list[int],
) -> int:
    """What the work that began at ``time`` had waited for; failing that, what ran meanwhile; or -1."""
    at = bisect_right(ends, time)
    latest = -1
    while at > 0 and ends[at - 1] >= time - HANDOVER_NS:
        at -= 1
        other = by_end[at]
        if start[other] < time and other != now:
            if stream[other] == stream[now]:
                return other
            latest = other if latest < 0 else latest
    if latest >= 0:
        return latest
    # Nothing had just ended: it was launched late. What ran until then in another stream had the device.
    begun = range(bisect_right(start, time - 1) - 1, -1, -1)
    return next((at for at in begun if end[at] > time), -1)
