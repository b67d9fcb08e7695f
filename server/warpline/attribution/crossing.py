"""What goes through memory at a graph break: tensors that compiled code makes, and that only the compiled
code after the break and their backward passes read. Compiled together, both would hand them over in
registers.

Inductor's code asks for the memory of its results right before it computes them, and Dynamo's frames let go
of them where the function ends. So what is allocated before a break and freed by the end of what follows
crosses it: it was written and read once, at least. So does a gradient, which the backward pass of the code
after the break makes, and which that of the code before it reads and frees. What the last kernel before the
break makes and one of these backward passes frees crosses as well: of code in one graph Inductor keeps the
inputs, and computes again what is made of them element by element. What the function returns is freed later,
and counts nothing.

Only the kernels next to the break count. Where the code that reads has products besides, its later kernels
may read the tensor once more: it is written then as before, and one reading of it is saved. Where all code on
both sides computes element by element, and hands over all that it makes, both may read other tensors in
common: one kernel for both takes as long as the longer part, which may save more.

A function that has a break is not inlined: it is compiled for itself, and the code that calls it breaks at
the call. So between two pieces that launch kernels may be others that launch none, and breaks in each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from warpline.attribution.around import FRAME, FUNCTION, operators
from warpline.attribution.compiled import BACKWARD
from warpline.attribution.memory import Lives, lives
from warpline.attribution.peaks import peaks_of
from warpline.model.profile import Crossing
from warpline.trace import nest
from warpline.trace.columns import KERNEL, OP, Bools, Ints, Trace, take

#: Dynamo's name of the code after a break, with its line.
_RESUMED = re.compile(r"\btorch_dynamo_resume_in_.*_at_(\d+)$")
_TRITON, _POINTWISE = "triton_", "triton_poi_"
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Launches:
    """Device work that a thread queued, in this order."""

    time: Ints
    triton: Bools  # a kernel of Inductor's
    pointwise: Bools  # one that computes each element by itself
    spent_ns: Ints

    def between(self, first: int, last: int) -> slice:
        """The work that was queued from ``first`` on and before ``last``, in ns."""
        low, high = np.searchsorted(self.time, [first, last])
        return slice(int(low), int(high))

    def of(self, span: _Span) -> slice:
        """The work that compiled code queued."""
        return self.between(span.begun, span.ended)

    def spent(self, which: slice) -> float:
        """The time of some of it, in ms."""
        return float(self.spent_ns[which].sum()) / 1e6

    def fusible(self, made: slice, read: slice) -> bool:
        """Whether Inductor could make one kernel of the last one of ``made`` and the first one of ``read``:
        both are its own, and one of them sums up nothing."""
        if made.start == made.stop or read.start == read.stop:
            return False
        pair = [made.stop - 1, read.start]
        return bool(self.triton[pair].all() and self.pointwise[pair].any())


@dataclass(frozen=True, slots=True)
class _Frames:
    """Calls of compiled code on the main thread, in order of their start. Code after a break runs within the
    code before it, as does that of a function that it calls and that has a break."""

    region: list[str]  # torch's numbers
    start: Ints
    until: Ints  # the end of the outermost one around it
    following: Ints  # the start of the next one, or that end
    first: Ints  # the time of its first line record
    location: Ints  # of that record; 0 where there is none


@dataclass(frozen=True, slots=True)
class _Span:
    """When compiled code runs. ``done``: by when what only it reads is freed."""

    begun: int
    ended: int
    done: int

    def frees(self, freed: Ints) -> Bools:
        """Whether this code freed each piece of memory, given the times at which they were freed."""
        found: Bools = (freed > self.begun) & (freed <= self.done)
        return found


@dataclass(slots=True)
class _Sums:
    bytes: float = 0.0
    saved_ms: float = 0.0
    pieces: set[int] = field(default_factory=set)

    def add(self, handed: tuple[float, float]) -> None:
        """Adds the bytes of tensors, and what one kernel would save."""
        self.bytes += handed[0]
        self.saved_ms += handed[1]


def crossings(trace: Trace) -> tuple[Crossing, ...]:
    """The graph breaks at which tensors cross. Empty where the bandwidth of the device is not known."""
    breaks, callers = _resumed(trace)
    peaks = peaks_of(trace.manifest.device.name, trace.facts)
    if not breaks or peaks is None or not trace.on_gpu:
        return ()
    frames, held, work = _frames(trace), lives(trace), _launches(trace, trace.main)
    thread, backward = _backward(trace, frames)
    engine = _launches(trace, thread)
    others = trace.host.start_ns[(trace.host.kind == OP) & (trace.host.thread == trace.main)]
    records = trace.records
    rows = np.flatnonzero((records.thread == trace.main) & np.isin(records.location, list(breaks)))
    broken = records.time_ns[rows], [breaks[int(one)] for one in records.location[rows]]
    own = [work.between(*span) for span in zip(frames.start, frames.following, strict=True)]
    pieces = [row for row, launched in enumerate(own) if launched.start < launched.stop]
    found: dict[tuple[Place, ...], _Sums] = {}
    for before, behind in pairwise(pieces):
        begun, resumed, until = frames.start[before], frames.start[behind], frames.until[behind]
        if resumed >= frames.until[before] or frames.location[behind] == 0:
            continue
        if not trace.window_ns[0] <= resumed < trace.window_ns[1]:
            continue
        at = _between(broken, frames, before, behind, resumes=frames.location[behind] in (*breaks, *callers))
        if not at:
            continue
        after = int(np.searchsorted(others, until))
        limit = others[after] if after < len(others) else until
        made, read = (_Span(begun, resumed, resumed), _Span(resumed, frames.following[behind], limit))
        later = [backward[one] for one in (before, behind) if one in backward]
        sums = found.setdefault(at, _Sums())
        sums.pieces |= {before, behind}
        sums.add(_handed(held, work, made, read, later, peaks.bytes_per_s))
        if len(later) > 1:
            sums.add(_handed(held, engine, later[1], later[0], (), peaks.bytes_per_s))
    return tuple(
        Crossing(
            *at[-1],
            bytes=sums.bytes / trace.steps,
            saved_ms=sums.saved_ms / trace.steps,
            device_ms=(
                sum(work.spent(own[row]) for row in sums.pieces)
                + sum(engine.spent(engine.of(backward[row])) for row in sums.pieces if row in backward)
            )
            / trace.steps,
            regions=tuple(sorted({frames.region[row] for row in sums.pieces})),
            also=at[:-1],
        )
        for at, sums in found.items()
        if sums.bytes
    )


def _handed(
    held: Lives, work: _Launches, made: _Span, read: _Span, later: Sequence[_Span], bytes_per_s: float
) -> tuple[float, float]:
    """Bytes of what ``made`` makes for ``read``, and what one kernel for both would save, in ms. ``later``:
    the backward passes of both, which may read what the last kernel of ``made`` makes, too."""
    maker, reader = work.of(made), work.of(read)
    if not work.fusible(maker, reader):
        return 0.0, 0.0
    low, high = np.searchsorted(held.time, [made.begun, read.begun])
    own = np.arange(low, high)[held.bytes[low:high] > 0]
    freed = held.freed[own]
    last = held.time[own] > (work.time[maker.stop - 2] if maker.stop - maker.start > 1 else 0)
    kept = np.zeros(len(own), bool)
    for one in later:
        kept |= last & one.frees(freed)
    crossed = read.frees(freed) & (last | bool(work.triton[maker].all()))
    size = float(held.bytes[own[crossed | kept]].sum())
    saved = 1e3 * size / bytes_per_s * (2 if work.triton[reader].all() else 1)
    if size and crossed.all() and work.pointwise[maker].all() and work.pointwise[reader].all():
        saved = max(saved, min(work.spent(maker), work.spent(reader)))
    return size, saved


def _between(
    broken: tuple[Ints, list[Place]], frames: _Frames, before: int, behind: int, resumes: bool
) -> tuple[Place, ...]:
    """The breaks between two pieces. ``broken``: when code went on after one, and which one."""
    time, places = broken
    low, high = np.searchsorted(time, frames.first[[before, behind]], "right")
    if not resumes:  # a function begins, which was not inlined because of a break further on in it
        high = min(high + 1, np.searchsorted(time, frames.until[behind]))
    elif low == high:  # it goes on after a call of the piece before
        low = np.searchsorted(time, frames.start[before])
    return tuple(dict.fromkeys(places[low:high]))


def _frames(trace: Trace) -> _Frames:
    host, records = trace.host, trace.records
    rows = np.flatnonzero(operators(trace, FRAME) & (host.thread == trace.main))
    start, end = host.start_ns[rows], host.end_ns[rows]
    # Dynamo calls the code after a break, which records its first line: the break's own.
    record = 1 + nest.last_before(records.thread, records.time_ns, host.thread[rows], start)
    record[record >= len(records.time_ns)] = -1
    inside = (take(records.time_ns, record) < end) & (take(records.thread, record) == trace.main)
    until = np.maximum.accumulate(end)
    return _Frames(
        [trace.names[name].removeprefix(FRAME) for name in host.name[rows]],
        start,
        until,
        np.minimum(np.append(start[1:], until[-1:]), until),
        np.where(inside, take(records.time_ns, record), start),
        np.where(inside, take(records.location, record, missing=0), 0),
    )


def _backward(trace: Trace, frames: _Frames) -> tuple[int, dict[int, _Span]]:
    """The thread of the backward passes, and that of each frame which has one, by the frame's row."""
    host = trace.host
    nodes = np.flatnonzero(operators(trace, BACKWARD) & (host.sequence >= 0))
    called = np.flatnonzero(
        operators(trace, FUNCTION) & ~operators(trace, BACKWARD) & (host.thread == trace.main)
    )
    of = dict(zip(host.sequence[called].tolist(), host.start_ns[called].tolist(), strict=True))
    found: dict[int, _Span] = {}
    for node in nodes.tolist():
        begun = of.get(int(host.sequence[node]))
        if begun is not None and begun < host.start_ns[node]:
            around = host.parent[node] if host.parent[node] >= 0 else node
            span = _Span(int(host.start_ns[node]), int(host.end_ns[node]), int(host.end_ns[around]))
            found[int(np.searchsorted(frames.start, begun, "right")) - 1] = span
    return int(host.thread[nodes[0]]) if len(nodes) else trace.main, found


def _resumed(trace: Trace) -> tuple[dict[int, Place], set[int]]:
    """The break (file and line) after which Dynamo's code goes on, by the location of its line record; and
    the locations of code that goes on after a call of another function, which may have a break.

    A function whose break is within a loop does not go on: Dynamo leaves all of it as it is, and the record
    of the line itself tells the break."""
    breaks = {event.place for event in trace.facts.compile_events if event.kind == "graph_break"}
    found: dict[int, Place] = {}
    left: dict[int, Place] = {}
    callers = set()
    where = trace.locations
    for number, (file, line, function) in enumerate(where.locations if breaks else ()):
        if function < 0:
            continue
        resumed = _RESUMED.search(where.functions[function])
        place = where.files[file], int(resumed[1]) if resumed is not None else line
        if place in breaks:
            (found if resumed is not None else left)[number] = place
        elif resumed is not None:
            callers.add(number)
    gone_on = set(found.values())
    return found | {number: place for number, place in left.items() if place not in gone_on}, callers


def _launches(trace: Trace, thread: int) -> _Launches:
    kernels, host = trace.kernels, trace.host
    rows = np.flatnonzero(kernels.launch >= 0)
    rows = rows[host.thread[kernels.launch[rows]] == thread]
    time = host.start_ns[kernels.launch[rows]]
    by = np.argsort(time, kind="stable")
    rows = rows[by]
    name, own = kernels.name[rows], kernels.kind[rows] == KERNEL
    return _Launches(
        time[by],
        trace.names.mask(_TRITON)[name] & own,
        trace.names.mask(_POINTWISE)[name] & own,
        kernels.end_ns[rows] - kernels.start_ns[rows],
    )
