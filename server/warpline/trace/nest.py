"""Nesting of spans, computed on columns.

Spans of one thread nest (a call ends before its caller). The depth of a span is the number of spans that
began before it minus the number that ended before it. The parent of a span of depth *d* is the last span of
depth *d - 1* that began before it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpline.trace.columns import Bools, Ints

_SHORT = (1 << 15) - 1  # the largest number in 16 bits
_FEW = 8  # times as many sorted moments to look up: it is quicker to look up where the few lie among them


def order(thread: Ints, start: Ints, end: Ints) -> Ints:
    """Permutation that sorts by thread, then start, outer before inner; equal spans keep their order."""
    by = _merged(thread, start)
    alike = np.zeros(len(by) + 1, bool)  # as the span before it
    alike[1:-1] = (np.diff(start[by]) == 0) & (np.diff(thread[by]) == 0)
    tied = np.flatnonzero(alike[1:] | alike[:-1])
    rows = by[tied]
    by[tied] = rows[np.lexsort((-end[rows], start[rows], thread[rows]))]
    return by


def short(numbers: Ints) -> NDArray[np.integer[Any]]:
    """Numbers from 0 on in 16 bits, if they fit: numpy then sorts them by radix, in a fourth of the time."""
    return numbers.astype(np.int16) if numbers.max(initial=0) <= _SHORT else numbers


def depth_and_parent(thread: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Depth and parent index (-1: none) of spans sorted as :func:`order` sorts them.

    A span that ends after its parent (a malformed one, or a range that was closed late by hand) gets the
    nearest span that contains it as its parent.
    """
    count = len(start)
    depth = np.zeros(count, np.int64)
    parent = np.full(count, -1, np.int64)
    bounds = np.searchsorted(thread, np.arange(thread[-1] + 2)) if count else np.zeros(1, np.int64)
    for low, high in pairwise(bounds.tolist()):
        # Without this, an empty span would count as ended before it began.
        ends = np.sort(np.maximum(end[low:high], start[low:high] + 1))
        begun = np.arange(high - low)
        depth[low:high] = np.maximum(begun - np.searchsorted(ends, start[low:high], "right"), 0)
        _parents(depth[low:high], parent[low:high], low)
    while True:
        late = (parent >= 0) & (end[parent] < end)
        if not late.any():
            break
        parent[late] = parent[parent[late]]
    return depth, parent


def _parents(depth: Ints, parent: Ints, base: int) -> None:
    levels = [np.flatnonzero(depth == level) for level in range(int(depth.max(initial=-1)) + 1)]
    for outer, inner in pairwise(levels):
        at = np.searchsorted(outer, inner) - 1
        parent[inner] = np.where(at >= 0, outer[np.maximum(at, 0)] + base, -1)


def nearest(parent: Ints, depth: Ints, *chosen: Bools) -> list[Ints]:
    """The innermost chosen span around each span, itself included; -1 if none. One column per mask in
    ``chosen``.

    All masks are handled in one pass over the levels. A mask without any span costs neither time nor memory:
    its column is read-only."""
    index, nothing = np.arange(len(parent)), np.broadcast_to(np.int64(-1), len(parent))
    found: list[Ints] = [np.where(each, index, -1) if each.any() else nothing for each in chosen]
    wanted = [one for one in found if one is not nothing]
    by_depth = np.argsort(short(depth), kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(1, int(depth.max(initial=0)) + 2))
    for low, high in pairwise(bounds.tolist()):
        level = by_depth[low:high]
        level = level[parent[level] >= 0]
        for one in wanted:
            missing = level[one[level] < 0]
            one[missing] = one[parent[missing]]
    return found


def innermost(thread: Ints, start: Ints, end: Ints, depth: Ints, parent: Ints) -> tuple[Ints, Ints, Ints]:
    """Changes of the innermost span of each thread: (thread, time, span or -1 for none), sorted.

    Of several changes at one time, the last one applies: ends come before starts, inner ends before outer
    ends, outer starts before inner ones.
    """
    begun = np.flatnonzero(end > start)  # an empty span changes nothing
    ended = begun[np.lexsort((-short(depth)[begun], end[begun], short(thread)[begun]))]
    who = np.concatenate([thread[ended], thread[begun]])
    when = np.concatenate([end[ended], start[begun]])
    # Both halves are sorted, so this merges them, and ends stay before starts.
    by = _merged(who, when)
    return who[by], when[by], np.concatenate([parent[ended], begun])[by]


def _merged(thread: Ints, time: Ints) -> Ints:
    """Permutation that sorts by thread, then time; equal rows keep their order. Quick if the rows are a few
    sorted runs."""
    if not len(time):
        return np.zeros(0, np.int64)
    low = int(time.min())
    span = int(time.max()) - low + 1
    if (int(thread.max()) + 1) * span < 1 << 62:
        return np.argsort(thread * span + (time - low), kind="stable")
    return np.lexsort((time, thread))


def covering(spans: tuple[Ints, Ints, Ints], parent: Ints, thread: Ints, time: Ints) -> Ints:
    """Innermost of ``spans`` (thread, start, end, sorted by :func:`order`) around each moment, or -1.

    ``parent``: parents of the spans, from :func:`depth_and_parent`.
    """
    of_thread, start, end = spans
    at = last_before(of_thread, start, thread, time)
    over = np.flatnonzero(at >= 0)
    while len(over := over[end[at[over]] <= time[over]]):
        at[over] = parent[at[over]]
        over = over[at[over] >= 0]
    return at


def last_before(of_thread: Ints, when: Ints, thread: Ints, time: Ints) -> Ints:
    """Index of the last row at or before each moment on its thread, or -1; rows are sorted by thread, then
    time."""
    found = np.full(len(time), -1, np.int64)
    threads = np.flatnonzero(np.bincount(thread)) if len(of_thread) else np.zeros(0, np.int64)
    for each in threads.tolist():
        low, high = np.searchsorted(of_thread, [each, each + 1])
        rows = thread == each if len(threads) > 1 else slice(None)
        at = latest(when[low:high], time[rows])
        found[rows] = np.where(at >= 0, at + low, -1)
    return found


def latest(when: Ints, time: Ints) -> Ints:
    """Index of the last of the sorted moments ``when`` at or before each of ``time``; -1 if there is none."""
    if _FEW * len(when) < len(time) and bool((time[1:] >= time[:-1]).all()):
        first = np.searchsorted(time, when)
        return np.repeat(np.arange(-1, len(when)), np.diff(first, prepend=0, append=len(time)))
    found: Ints = np.searchsorted(when, time, "right") - 1
    return found
