"""Trace -> Timeline: the captured window as host segments in order, and the kernels that they queue.

The threads that drive the device are merged into one: while autograd's thread works, the main thread waits
for it, so only one of them works at a time. The time between calls is host work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warpline.attribution import anomaly
from warpline.attribution.around import Around, around
from warpline.attribution.waits import blocking_copies
from warpline.simulate.waits import Hold, Kernel, holds
from warpline.simulate.work import OTHER, classes
from warpline.trace import nest
from warpline.trace.columns import COPY, RUNTIME, Bools, Floats, Ints, Trace, take

WORK, LAUNCH, SYNC, LOADER = 0, 1, 2, 3
_LOADER_MARKS = ("enumerate(DataLoader)", "warpline.loader")


@dataclass(frozen=True, slots=True)
class Places:
    """The lines that attribution found, by number; 0 is none."""

    of_host: Ints  # number of the line that caused each host event
    of_location: Ints  # number of each entry of ``trace.locations``
    lines: Sequence[tuple[str, int]]  # (file, line) of each number
    around: Around | None = None  # the enclosing calls of each host event, if already computed
    changes: tuple[Ints, Ints, Ints] | None = (
        None  # of the innermost host event, likewise (``nest.innermost``)
    )


@dataclass(frozen=True, slots=True)
class Timeline:
    """Host segments in order, and kernels sorted by the segment that queues them.

    ``host_ns`` is the segment's own time, which for SYNC and LOADER includes the wait. ``place`` is a line
    number of :class:`Places`. All columns of segments have one length, and all columns of kernels another.
    """

    start_ns: Ints
    host_ns: Floats
    kind: Ints  # WORK, LAUNCH, SYNC, LOADER
    place: Ints
    op: Ints  # innermost dispatcher call (index into Host), -1 between calls
    op_name: Ints  # of every host event: index into ``trace.names``
    work: Ints  # class of that call: see warpline.simulate.work
    step: Ints
    backward: Bools
    copies: Bools  # the segment queues a copy
    records: Bools  # it records an event in a stream
    awaits: Bools  # a SYNC that waits for a recorded event only
    traceback_ns: Floats  # part of ``host_ns``: anomaly detection stores tracebacks
    checks: Bools  # it looks for NaN in a gradient, for anomaly detection
    first: Ints  # kernels of segment i are first[i]:first[i + 1]
    kernel: Ints  # row of ``trace.kernels``
    kernel_ns: Floats
    kernel_start: Ints  # in the trace
    stream: Ints
    kernel_place: Ints
    kernel_work: Ints
    kernel_op: Ints
    kernel_backward: Bools
    kernel_step: Ints
    kernel_bytes: Ints
    kernel_name: Ints  # index into ``trace.names``
    kernel_shape: Ints  # index into ``trace.launch_shapes``
    kernel_checks: Bools  # it looks for NaN in a gradient, for anomaly detection
    blocking: Bools  # the call returns when the kernel (a pageable copy) is done
    holds: Mapping[Kernel, Hold]  # by stream and kernel_start: kernels delayed by waits between streams
    steps: int

    @property
    def has_kernels(self) -> bool:
        """Whether the window queued work on a device; else the operators are the work."""
        return len(self.kernel_ns) > 0


def timeline_of(trace: Trace, places: Places) -> Timeline:
    """The captured steps as host segments and their kernels, times in ns."""
    low, high = trace.window_ns
    host, kernels = trace.host, trace.kernels
    bounds, span = _moments(trace, low, high, places.changes)
    start, duration = bounds[:-1], np.diff(bounds).astype(np.float64)
    records = _of_main(trace)
    placed = places.of_host
    between = places.of_location[records[1][_last(records[0], start)]]
    place = np.where(span >= 0, take(placed, span), between)
    known = places.around or around(trace)
    checking = anomaly.checks(trace)
    op = take(known.op, span)
    loader = _inside(trace, start)
    waits = trace.names.containing("ynchronize")
    waiting = (host.kind == RUNTIME) & waits[host.name]
    kind = np.where(take(waiting, span, missing=False), SYNC, WORK)
    recording, awaiting = (
        take((host.kind == RUNTIME) & trace.names.containing(part)[host.name], span, missing=False)
        for part in ("EventRecord", "EventSynchronize")
    )
    kind[loader] = LOADER
    # Which segment queues which kernel: the one in which its launch began.
    queued = np.where(kernels.launch >= 0, take(host.start_ns, kernels.launch), kernels.start_ns)
    inside = (queued >= low) & (queued < high)
    segment = np.searchsorted(start, queued, "right") - 1
    by = np.lexsort((kernels.start_ns, segment))
    by = by[inside[by]]
    segment, launch = segment[by], kernels.launch[by]
    kind[segment] = LAUNCH
    first = np.searchsorted(segment, np.arange(len(start) + 1))
    caller = take(known.op, launch)
    cls = classes(trace)
    copy = kernels.kind[by] == COPY
    stream = kernels.device_stream
    copies = np.zeros(len(start), bool)
    copies[segment[copy]] = True
    starts = np.array([begin for begin, _ in trace.manifest.captured] or [low], np.int64)
    step = np.maximum(nest.latest(starts, start), 0)
    return Timeline(
        start_ns=start,
        host_ns=duration,
        kind=kind.astype(np.int64),
        place=place,
        op=op,
        op_name=host.name,
        work=take(cls, op, missing=OTHER),
        step=step,
        backward=take(known.backward, op, missing=False),
        copies=copies,
        records=recording,
        awaits=awaiting & bool(recording.any()),
        traceback_ns=anomaly.within(bounds[:-1], bounds[1:], anomaly.tracebacks(trace)),
        checks=take(checking, span, missing=False),
        first=first,
        kernel=by,
        kernel_ns=(kernels.end_ns - kernels.start_ns)[by].astype(np.float64),
        kernel_start=kernels.start_ns[by],
        stream=stream[by],
        kernel_place=take(placed, launch, missing=0),
        kernel_work=take(cls, caller, missing=OTHER),
        kernel_op=caller,
        kernel_backward=take(known.backward, caller, missing=False),
        kernel_step=step[segment],
        kernel_bytes=kernels.bytes[by],
        kernel_name=kernels.name[by],
        kernel_shape=kernels.shape[by],
        kernel_checks=take(checking, launch, missing=False),
        blocking=blocking_copies(trace)[by],
        holds=holds(trace, stream),
        steps=trace.steps,
    )


def _moments(trace: Trace, low: int, high: int, changes: tuple[Ints, Ints, Ints] | None) -> tuple[Ints, Ints]:
    """Sorted times at which the innermost host event changes, and that event from each of them on (but the
    last)."""
    host = trace.host
    thread, when, span = changes or nest.innermost(
        host.thread, host.start_ns, host.end_ns, host.depth, host.parent
    )
    marks = trace.marks
    records = _of_main(trace)[0]
    steps = np.array([edge for pair in trace.manifest.captured for edge in pair], np.int64)
    every = np.concatenate([when, marks.start_ns, marks.end_ns, records, steps, np.array([low, high])])
    every = np.sort(every[(every >= low) & (every <= high)], kind="stable")  # by merging sorted runs
    bounds = every[np.flatnonzero(np.diff(every, prepend=low - 1))]  # np.unique hashes: far slower
    start = bounds[:-1]
    found: Ints | None = None
    others = [one for one in np.flatnonzero(np.bincount(thread)).tolist() if one != trace.main]
    for one in (trace.main, *others):  # the main thread's own work first
        mine = slice(*np.searchsorted(thread, [one, one + 1]).tolist())
        now = take(span[mine], np.searchsorted(when[mine], start, "right") - 1)
        found = now if found is None else np.where(found >= 0, found, now)
    assert found is not None
    return bounds, found


def _of_main(trace: Trace) -> tuple[Ints, Ints]:
    """Times and locations of the main thread's records, after a dummy so that the columns are never empty."""
    first = trace.records.first
    part = (
        slice(int(first[trace.main]), int(first[trace.main + 1])) if len(first) > trace.main + 1 else slice(0)
    )
    time, location = trace.records.time_ns[part], trace.records.location[part]
    return np.concatenate([[np.int64(0)], time]), np.concatenate([[np.int64(0)], location])


def _last(times: Ints, start: Ints) -> Ints:
    return nest.latest(times, start)


def _inside(trace: Trace, start: Ints) -> Bools:
    """Segments in which the main thread waits for a batch, or loads one."""
    marks = trace.marks
    loads = trace.names.mask(*_LOADER_MARKS)
    chosen = (marks.thread == trace.main) & loads[marks.name]
    if not chosen.any():
        return np.zeros(len(start), bool)
    begun = np.searchsorted(np.sort(marks.start_ns[chosen]), start, "right")
    ended = np.searchsorted(np.sort(marks.end_ns[chosen]), start, "right")
    inside: Bools = begun > ended
    return inside


def without(timeline: Timeline, gone: Bools) -> Timeline:
    """``timeline`` with some kernels left out."""
    if not gone.any():
        return timeline
    removed = np.concatenate([[0], np.cumsum(gone)])
    first = timeline.first - removed[timeline.first]
    stays = ~gone
    empty = (np.diff(first) == 0) & (timeline.kind == LAUNCH)
    return replace(
        timeline,
        first=first,
        kind=np.where(empty, WORK, timeline.kind),
        **{name: getattr(timeline, name)[stays] for name in KERNEL_COLUMNS},
    )


def beginning(timeline: Timeline, count: int) -> Timeline:
    """The first ``count`` segments, as a window of one step."""
    kept = without(timeline, np.arange(len(timeline.kernel_ns)) >= timeline.first[count])
    columns = {name: getattr(kept, name)[:count] for name in SEGMENT_COLUMNS}
    return replace(kept, first=kept.first[: count + 1], steps=1, **columns)


SEGMENT_COLUMNS = (
    *("start_ns", "host_ns", "kind", "place", "op", "work", "step", "backward", "copies", "traceback_ns"),
    *("checks", "records", "awaits"),
)
KERNEL_COLUMNS = (
    *("kernel", "kernel_ns", "kernel_start", "stream", "kernel_place", "kernel_work", "kernel_op"),
    *("kernel_backward", "kernel_step", "kernel_bytes", "kernel_name", "kernel_shape", "kernel_checks"),
    "blocking",
)
