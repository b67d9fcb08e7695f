"""Memory that each line holds at the step's peak, and memory that it allocates and never frees; what
recomputed forward passes hold for their backward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.attribution.place import RECOMPUTE_MARK, Placed, location_of
from warpline.attribution.table import LineTable
from warpline.trace import nest
from warpline.trace.columns import Floats, Ints, Trace, take


@dataclass(frozen=True, slots=True)
class LineMemory:
    """Bytes by line number."""

    at_peak: Ints
    kept_per_step: Floats
    peak_bytes: int  # the most that was allocated at once, by the allocator's count
    recomputed_bytes: float = 0.0  # a step: what all recomputed forward passes leave allocated at their end


@dataclass(frozen=True, slots=True)
class Lives:
    """Allocations and frees of the device's memory (on a CPU: of the host's), in order of time."""

    rows: Ints  # of Trace.memory
    time: Ints
    bytes: Ints  # below 0: freed
    freed: Ints  # when, for an allocation; the largest number where it was not


def lives(trace: Trace) -> Lives:
    """When what was allocated was freed."""
    memory = trace.memory
    rows = np.flatnonzero(memory.on_device if trace.on_gpu else ~memory.on_device)
    time, size, address = memory.time_ns[rows], memory.bytes[rows], memory.address[rows]
    by = _by_address(memory.device[rows], address)
    freed = np.full(len(rows), np.iinfo(np.int64).max)
    this, following = by[:-1], by[1:]
    ends = (address[this] == address[following]) & (size[this] > 0)
    freed[this[ends]] = time[following[ends]]
    return Lives(rows, time, size, freed)


def memory_by_line(trace: Trace, table: LineTable, placed: Placed) -> LineMemory:
    """Memory by line. Only allocations during the recording have a line: earlier ones (parameters) do not."""
    memory, held = trace.memory, lives(trace)
    nothing = LineMemory(np.zeros(len(table), np.int64), np.zeros(len(table)), 0)
    rows, time, size, freed = held.rows, held.time, held.bytes, held.freed
    if not len(rows):
        return nothing
    line = _lines(trace, table, placed, rows)
    born = size > 0
    inside = (time >= trace.window_ns[0]) & (time < trace.window_ns[1])
    if not inside.any():
        return nothing
    total = memory.total[rows] if memory.total[rows].any() else np.cumsum(size)
    peak = int(np.flatnonzero(inside)[np.argmax(total[inside])])
    alive = born & (np.arange(len(rows)) <= peak) & (freed > time[peak])
    at_peak = np.bincount(line[alive], weights=size[alive], minlength=len(table)).astype(np.int64)
    never = born & (time >= trace.window_ns[0]) & (freed > trace.window_ns[1])
    kept = _kept(trace, table, time[never], line[never], size[never])
    recomputed = _recomputed(trace, memory.thread[rows][born], time[born], freed[born], size[born])
    return LineMemory(at_peak, kept, int(total[peak]), recomputed)


def _recomputed(trace: Trace, thread: Ints, time: Ints, freed: Ints, size: Ints) -> float:
    """What checkpointing saves of memory: the tensors that a forward pass makes again, and that are still
    there when it ends, are those that the backward pass reads. Where an exception ends it, as soon as it has
    made all of them, the locals of its functions are there too: an upper end."""
    marks = trace.marks
    start, end = marks.start_ns, marks.end_ns
    ours = trace.names.mask(RECOMPUTE_MARK)[marks.name]
    ours &= (start >= trace.window_ns[0]) & (end <= trace.window_ns[1])
    spans = (marks.thread[ours], start[ours], end[ours])
    _, parent = nest.depth_and_parent(*spans)
    mark = nest.covering(spans, parent, thread, time)
    left = (mark >= 0) & (freed > take(spans[2], mark, missing=0))
    return float(size[left].sum()) / trace.steps


def _lines(trace: Trace, table: LineTable, placed: Placed, rows: Ints) -> Ints:
    """The line of the op around each allocation event; without one, the line its thread was at."""
    host, memory = trace.host, trace.memory
    spans = (host.thread, host.start_ns, host.end_ns)
    op = nest.covering(spans, host.parent, memory.thread[rows], memory.time_ns[rows])
    record = nest.last_before(
        trace.records.thread, trace.records.time_ns, memory.thread[rows], memory.time_ns[rows]
    )
    own = table.of_location[location_of(trace, record)]
    return np.where(op >= 0, take(placed.line, op), own)


def _kept(trace: Trace, table: LineTable, time: Ints, line: Ints, size: Ints) -> Floats:
    """Median over steps of the bytes that a step allocated and that were never freed, by line.

    The last step is omitted, since memory freed in the next step would look kept. The median ignores memory
    that is allocated once (a buffer, an optimizer's state).
    """
    ends = np.array([end for _, end in trace.manifest.captured[:-1]], np.int64)
    if not len(ends):
        return np.zeros(len(table))
    step = np.searchsorted(ends, time, "right")
    counted = step < len(ends)
    sums = np.bincount(
        step[counted] * len(table) + line[counted], weights=size[counted], minlength=len(ends) * len(table)
    )
    median: Floats = np.median(sums.reshape(len(ends), len(table)), axis=0)
    return median


def _by_address(device: Ints, address: Ints) -> Ints:
    """Permutation that sorts by device, then address; equal ones keep their order, which is that of time."""
    if bool((device == device[:1]).all()):
        return np.argsort(address, kind="stable")
    return np.lexsort((address, device))
