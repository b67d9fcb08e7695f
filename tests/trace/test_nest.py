"""Nesting by columns against the plain stack it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.attribution.device import idle, owners
from warpline.attribution.timeline import complement, union
from warpline.trace import nest
from warpline.trace.columns import Kernels

SPAN = tuple[int, int, int]


@st.composite
def calls(draw: st.DrawFn) -> list[SPAN]:
    """(thread, start, end) as calls make them: a callee lies in its caller; siblings may touch."""
    found: list[SPAN] = []

    def inside(thread: int, low: int, high: int, depth: int) -> None:
        at = low
        while at < high and draw(st.booleans()):
            start = draw(st.integers(at, high - 1))
            end = draw(st.integers(start + 1, high))
            found.append((thread, start, end))
            if depth < 4:
                inside(thread, start, end, depth + 1)
            at = end

    for thread in range(draw(st.integers(1, 3))):
        inside(thread, 0, 60, 0)
    return found


def columns(spans: list[SPAN]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(spans, np.int64).reshape(-1, 3)
    table = table[nest.order(table[:, 0], table[:, 1], table[:, 2])]
    return table[:, 0], table[:, 1], table[:, 2]


@given(calls())
@settings(deadline=None)
def test_depth_and_parent_are_those_of_a_stack(spans: list[SPAN]) -> None:
    thread, start, end = columns(spans)
    depth, parent = nest.depth_and_parent(thread, start, end)
    stack: list[int] = []
    for at in range(len(thread)):
        while stack and (thread[stack[-1]] != thread[at] or end[stack[-1]] <= start[at]):
            stack.pop()
        assert depth[at] == len(stack)
        assert parent[at] == (stack[-1] if stack else -1)
        stack.append(at)


@given(calls())
@settings(deadline=None)
def test_the_innermost_span_is_known_at_every_moment(spans: list[SPAN]) -> None:
    thread, start, end = columns(spans)
    depth, parent = nest.depth_and_parent(thread, start, end)
    who, when, span = nest.innermost(thread, start, end, depth, parent)
    around = nest.covering((thread, start, end), parent, np.repeat([0, 1, 2], 61), np.tile(np.arange(61), 3))
    for row, (each, moment) in enumerate((t, m) for t in range(3) for m in range(61)):
        holding = [at for at in range(len(thread)) if thread[at] == each and start[at] <= moment < end[at]]
        expected = max(holding, default=-1)  # outer before inner: the last one is the innermost
        rows = np.flatnonzero((who == each) & (when <= moment))
        assert (span[rows[-1]] if len(rows) else -1) == expected
        assert around[row] == expected


@given(calls(), st.sets(st.integers(0, 200)))
@settings(deadline=None)
def test_the_nearest_chosen_span_is_found(spans: list[SPAN], picked: set[int]) -> None:
    thread, start, end = columns(spans)
    depth, parent = nest.depth_and_parent(thread, start, end)
    chosen = np.isin(np.arange(len(thread)), list(picked))
    found, none = nest.nearest(parent, depth, chosen, np.zeros(len(thread), bool))
    assert (none == -1).all()
    for at in range(len(thread)):
        up = at
        while up >= 0 and not chosen[up]:
            up = parent[up]
        assert found[at] == up


def test_a_span_that_outlives_its_parent_is_given_to_one_that_holds_it() -> None:
    thread, start, end = columns([(0, 0, 100), (0, 10, 20), (0, 15, 40), (0, 50, 60)])
    _, parent = nest.depth_and_parent(thread, start, end)
    assert parent.tolist() == [-1, 0, 0, 0]


def kernels(spans: list[tuple[int, int, int]]) -> Kernels:
    """(start, length, stream); a stream runs one at a time."""
    table = np.array(sorted(spans), np.int64).reshape(-1, 3)
    none = np.zeros(len(table), np.int64)
    start, end = table[:, 0], table[:, 0] + table[:, 1]
    return Kernels(start, end, none, none, none, table[:, 2], none, none.astype(bool), none, none)


works = st.lists(st.tuples(st.integers(0, 90_000), st.integers(1, 20_000), st.integers(0, 3)), max_size=12)


@given(works)
@settings(deadline=None)
def test_owners_cover_the_busy_time_once(spans: list[tuple[int, int, int]]) -> None:
    table, window = kernels(spans), (1_000, 100_000)
    begin, until, kernel = owners(table, window)
    busy = union(np.clip(table.start_ns, *window), np.clip(table.end_ns, *window))
    assert (until > begin).all()
    assert (begin[1:] >= until[:-1]).all()
    assert [part.tolist() for part in union(begin, until)] == [part.tolist() for part in busy]
    gaps = idle(table, window)
    assert (until - begin).sum() + (gaps[1] - gaps[0]).sum() == window[1] - window[0]
    assert ((kernel >= 0) & (kernel < len(table))).all() if len(kernel) else True


def test_complement_of_nothing_is_the_window() -> None:
    none = np.zeros(0, np.int64)
    assert [part.tolist() for part in complement(none, none, (3, 9))] == [[3], [9]]


@given(st.lists(st.integers(0, 50), max_size=6), st.lists(st.integers(0, 50), max_size=120), st.booleans())
def test_the_latest_of_few_moments_is_that_of_a_search(
    few: list[int], many: list[int], ordered: bool
) -> None:
    when, time = np.array(sorted(few), np.int64), np.array(sorted(many) if ordered else many, np.int64)
    assert nest.latest(when, time).tolist() == [sum(one <= at for one in few) - 1 for at in time.tolist()]


def test_spans_too_long_for_one_key_are_merged_as_well() -> None:
    thread, start, end = columns([(0, 0, 1 << 61), (0, 5, 9), (3, 1, 2), (3, 2, 7)])
    depth, parent = nest.depth_and_parent(thread, start, end)
    who, when, span = nest.innermost(thread, start, end, depth, parent)
    found = list(zip(who.tolist(), when.tolist(), span.tolist(), strict=True))
    first = [(0, 0, 0), (0, 5, 1), (0, 9, 0), (0, 1 << 61, -1)]
    assert found == [*first, (3, 1, 2), (3, 2, -1), (3, 2, 3), (3, 7, -1)]


@pytest.mark.parametrize(("largest", "kind"), [(0, np.int16), (32_767, np.int16), (32_768, np.int64)])
def test_numbers_are_shortened_only_where_they_fit(largest: int, kind: type[np.generic]) -> None:
    numbers = np.array([largest, 1, 0])
    assert nest.short(numbers).dtype == kind
    assert nest.short(numbers).tolist() == numbers.tolist()
    assert not len(nest.short(numbers[:0]))
