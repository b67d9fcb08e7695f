"""What goes through memory at a graph break: tensors that compiled code makes, and that only the compiled
code after the break reads. Compiled together, both would hand them over in registers.

Inductor's code asks for the memory of its results right before it computes them, and Dynamo's frames let go
of them where the function ends. So what is allocated before a break and freed by the end of what follows
crosses it: it was written and read once, at least. What the function returns, and what a backward pass reads,
is freed later, and counts nothing.

A function that has a break is not inlined: it is compiled for itself, and the code that calls it breaks at
the call. So between two pieces that launch kernels may be others that launch none, and breaks in each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from warpline.attribution.around import FRAME, operators
from warpline.attribution.memory import lives
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
    """Device work that the main thread queued, in this order."""

    time: Ints
    triton: Bools  # a kernel of Inductor's
    pointwise: Bools  # one that computes each element by itself
    spent_ns: Ints

    def between(self, first: int, last: int) -> slice:
        """The work that was queued from ``first`` on and before ``last``, in ns."""
        low, high = np.searchsorted(self.time, [first, last])
        return slice(int(low), int(high))

    def fusible(self, before: slice, behind: slice) -> bool:
        """Whether Inductor could make one kernel of what is before a break and what is behind it: nothing but
        its own kernels, and on one side none that sums up."""
        pieces = before, behind
        return all(self.triton[each].any() and self.triton[each].all() for each in pieces) and any(
            self.pointwise[each].all() for each in pieces
        )


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


@dataclass(slots=True)
class _Sums:
    bytes: float = 0.0
    pieces: set[int] = field(default_factory=set)


def crossings(trace: Trace) -> tuple[Crossing, ...]:
    """The graph breaks at which tensors cross. Empty where the bandwidth of the device is not known."""
    breaks, callers = _resumed(trace)
    peaks = peaks_of(trace.manifest.device.name, trace.facts)
    if not breaks or peaks is None or not trace.on_gpu:
        return ()
    frames, held, work = _frames(trace), lives(trace), _launches(trace)
    others = trace.host.start_ns[(trace.host.kind == OP) & (trace.host.thread == trace.main)]
    records = trace.records
    rows = np.flatnonzero((records.thread == trace.main) & np.isin(records.location, list(breaks)))
    broken = records.time_ns[rows], [breaks[int(one)] for one in records.location[rows]]
    own = [work.between(*span) for span in zip(frames.start, frames.following, strict=True)]
    pieces = [row for row, launched in enumerate(own) if launched.start < launched.stop]
    found: dict[tuple[Place, ...], _Sums] = {}
    for before, behind in pairwise(pieces):
        begun, resumed, until = frames.start[before], frames.start[behind], frames.until[behind]
        if resumed >= frames.until[before] or not work.fusible(own[before], own[behind]):
            continue
        if not trace.window_ns[0] <= resumed < trace.window_ns[1] or frames.location[behind] == 0:
            continue
        at = _between(broken, frames, before, behind, resumes=frames.location[behind] in (*breaks, *callers))
        if not at:
            continue
        after = int(np.searchsorted(others, until))
        limit = others[after] if after < len(others) else until
        low, high = np.searchsorted(held.time, [begun, resumed])
        crossed = (held.freed[low:high] > resumed) & (held.freed[low:high] <= limit)
        sums = found.setdefault(at, _Sums())
        sums.bytes += float(held.bytes[low:high][crossed].sum())
        sums.pieces |= {before, behind}
    return tuple(
        Crossing(
            *at[-1],
            bytes=sums.bytes / trace.steps,
            moved_ms=2e3 * sums.bytes / trace.steps / peaks.bytes_per_s,
            device_ms=sum(float(work.spent_ns[own[row]].sum()) for row in sums.pieces) / 1e6 / trace.steps,
            regions=tuple(sorted({frames.region[row] for row in sums.pieces})),
            also=at[:-1],
        )
        for at, sums in found.items()
        if sums.bytes
    )


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


def _launches(trace: Trace) -> _Launches:
    kernels, host = trace.kernels, trace.host
    rows = np.flatnonzero(kernels.launch >= 0)
    rows = rows[host.thread[kernels.launch[rows]] == trace.main]
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
