"""What goes through memory at a graph break: tensors that compiled code makes, and that only the compiled
code after the break reads. Compiled together, both would hand them over in registers.

Inductor's code asks for the memory of its results right before it computes them, and Dynamo's frames let go
of them where the function ends. So what is allocated before a break and freed by the end of what follows
crosses it: it was written and read once, at least. What the function returns, and what a backward pass reads,
is freed later, and counts nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Sums:
    bytes: float = 0.0
    spent_ns: float = 0.0
    regions: set[str] = field(default_factory=set)


def crossings(trace: Trace) -> tuple[Crossing, ...]:
    """The graph breaks at which tensors cross. Empty where the bandwidth of the device is not known."""
    places, callers = _resumed(trace)
    peaks = peaks_of(trace.manifest.device.name, trace.facts)
    if not places or peaks is None or not trace.on_gpu:
        return ()
    host, records = trace.host, trace.records
    frames = np.flatnonzero(operators(trace, FRAME) & (host.thread == trace.main))
    start, end = host.start_ns[frames], host.end_ns[frames]
    # Dynamo calls the code after a break, which records its first line: the break's own.
    record = 1 + nest.last_before(records.thread, records.time_ns, host.thread[frames], start)
    record[record >= len(records.time_ns)] = -1
    inside = (take(records.time_ns, record) < end) & (take(records.thread, record) == trace.main)
    at = np.where(inside, take(records.location, record, missing=0), 0)
    held, work = lives(trace), _launches(trace)
    others = host.start_ns[(host.kind == OP) & (host.thread == trace.main)]
    found: dict[tuple[str, int], _Sums] = {}
    own = np.flatnonzero((records.thread == trace.main) & np.isin(records.location, list(places)))
    for row in np.flatnonzero(np.isin(at, [*places, *callers])).tolist():
        if row == 0 or not trace.window_ns[0] <= start[row] < trace.window_ns[1]:
            continue
        location = int(at[row])
        if location in callers:  # the break is in what it called before
            low, high = np.searchsorted(records.time_ns[own], [start[row - 1], start[row]])
            if low == high:
                continue
            location = int(records.location[own[high - 1]])
        begun, resumed, until = start[row - 1], start[row], max(end[row - 1], end[row])
        following = start[row + 1] if row + 1 < len(start) else until
        before, behind = work.between(begun, resumed), work.between(resumed, min(following, until))
        if not work.fusible(before, behind):
            continue
        after = int(np.searchsorted(others, until))
        limit = others[after] if after < len(others) else until
        low, high = np.searchsorted(held.time, [begun, resumed])
        crossed = (held.freed[low:high] > resumed) & (held.freed[low:high] <= limit)
        sums = found.setdefault(places[location], _Sums())
        sums.bytes += float(held.bytes[low:high][crossed].sum())
        sums.spent_ns += float(work.spent_ns[before].sum() + work.spent_ns[behind].sum())
        sums.regions |= {
            trace.names[host.name[each]].removeprefix(FRAME) for each in frames[row - 1 : row + 1]
        }
    return tuple(
        Crossing(
            file,
            line,
            bytes=sums.bytes / trace.steps,
            moved_ms=2e3 * sums.bytes / trace.steps / peaks.bytes_per_s,
            device_ms=sums.spent_ns / 1e6 / trace.steps,
            regions=tuple(sorted(sums.regions)),
        )
        for (file, line), sums in found.items()
        if sums.bytes
    )


def _resumed(trace: Trace) -> tuple[dict[int, tuple[str, int]], set[int]]:
    """The break (file and line) after which Dynamo's code goes on, by the location of its line record; and
    the locations of code that goes on after a call of another function, which may have a break."""
    breaks = {event.place for event in trace.facts.compile_events if event.kind == "graph_break"}
    found, callers = {}, set()
    where = trace.locations
    for number, (file, _, function) in enumerate(where.locations if breaks else ()):
        resumed = _RESUMED.search(where.functions[function]) if function >= 0 else None
        if resumed is not None and (where.files[file], int(resumed[1])) in breaks:
            found[number] = where.files[file], int(resumed[1])
        elif resumed is not None:
            callers.add(number)
    return found, callers


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
