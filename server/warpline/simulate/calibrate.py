"""What the profiler added, taken out: first what each record cost, where it fell; then one scale for
host time, so that the replay of the unchanged window gives the step as it was timed without the profiler.

A step that the device bounds does not show the host's scale. Then what the records cost is what the
runner measured for one, the scale is the usual one (``USUAL``), and what is left is the device's own
(clocks differ between two windows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from warpline.attribution.overhead import LEAST_SHARE, overhead
from warpline.model.profile import Profile
from warpline.simulate.replay import Clock, Feed, replay
from warpline.simulate.timeline import LAUNCH, SYNC, Places, Timeline
from warpline.trace.columns import OP, RUNTIME, Floats, Ints, Trace

#: What of the host's time is its own once the records' cost is taken off: 0.83 to 0.97 in the launch-bound
#: runs that were recorded on H200s (tests/captures).
USUAL = 0.9
#: What recording an operator cost there (2.2 to 5 us), for runs that did not measure it.
USUAL_OP_NS = 3_000.0
#: The step counts as explained by the device alone when the replay comes this close.
CLOSE = 0.97
#: What little is left is the host's where so much more of it explains it, else the device's.
NEARLY = 1.15
#: The device's clocks do not differ by more between two windows of one process.
QUICKEST = 0.9
#: A little more than what the device alone takes.
JUST = 1.001
#: A host so quick that only the device counts.
LEAST = 0.05
_HALVINGS, _EXACT = 24, 1e-4


def calibrated(line: Timeline, step_ns: float, feed: Feed | None) -> Clock:
    """The clock whose replay of ``line`` takes ``step_ns``."""
    clock = delays(line)

    def with_host(scale: float) -> float:
        return replay(line, replace(clock, host=scale), feed)

    if not len(line.kernel_ns) and feed is None:
        whole = with_host(1.0)
        return replace(clock, host=step_ns / whole if whole else 1.0)
    if with_host(USUAL) < CLOSE * step_ns:
        return replace(clock, host=_solve(with_host, step_ns, USUAL, 8.0))
    # Where the device explains the step without a host's help, the host is not quicker for it: how
    # quick it is decides what is left once the device's work shrinks.
    if with_host(LEAST) < CLOSE * step_ns:
        if with_host(USUAL) > step_ns:
            return replace(clock, host=_solve(with_host, step_ns, LEAST, USUAL))
        if step_ns <= with_host(USUAL * NEARLY):
            return replace(clock, host=_solve(with_host, step_ns, USUAL, USUAL * NEARLY))

    host = USUAL

    def with_device(scale: float) -> float:
        return replay(line, replace(clock, host=host, device=scale), feed)

    if with_device(QUICKEST) > step_ns:
        # No clock explains that: a host that follows or waits for the device was quicker than usual.
        host = _solve(with_host, max(step_ns, JUST * with_host(LEAST)), LEAST, USUAL)
    if abs(with_device(1.0) - step_ns) < _EXACT * step_ns:
        return replace(clock, host=host)  # something else sets the pace, whatever the device's clock
    return replace(clock, host=host, device=_solve(with_device, step_ns, 0.1, 2.0))


def delays(line: Timeline) -> Clock:
    """The device's own delays, read off the trace: between queued kernels, and from launch to start."""
    if not len(line.kernel_ns):
        return Clock()
    by = np.lexsort((line.kernel_start, line.stream))
    start, stream = line.kernel_start[by], line.stream[by]
    end = start + line.kernel_ns[by]
    gap = (start[1:] - end[:-1])[(stream[1:] == stream[:-1])]
    close = gap[(gap >= 0) & (gap < 3_000)]
    return Clock(gap_ns=float(np.median(close)) if len(close) else 1_000.0)


def unblocked(line: Timeline) -> Timeline:
    """Calls that were held up (a full queue, a wait inside) brought down to a usual one's time.

    The replay makes the waits anew; without this they would count twice.
    """
    host = line.host_ns.copy()
    for kind in (LAUNCH, SYNC):
        rows = line.kind == kind
        if rows.any():
            usual = float(np.median(host[rows]))
            limit = 5 * usual if kind == LAUNCH else usual
            host[rows] = np.where(host[rows] > limit, usual, host[rows])
    return replace(line, host_ns=host)


def relieved(trace: Trace, line: Timeline, step_ns: float) -> Timeline:
    """What each line record, each recorded op and each launch cost, taken off where it fell.

    The slowdown says what an op's record cost at least; a step that the device bounds hides it.
    """
    cost = overhead(trace, step_ns, trace.window_ns)
    records, host, facts = trace.records, trace.host, trace.facts
    per_op_ns, per_launch_ns = facts.op_record_ns or USUAL_OP_NS, facts.launch_record_ns or 0.0
    if cost.per_op_ns >= per_op_ns:
        per_op_ns, per_launch_ns = cost.per_op_ns, 0.0
    first, last = records.first[trace.main], records.first[trace.main + 1]

    def begun(times: Ints) -> Floats:
        inside = times[(times >= line.start_ns[0]) & (times < trace.window_ns[1])]
        at = np.searchsorted(line.start_ns, inside, "right") - 1
        counts: Floats = np.bincount(at, minlength=len(line.start_ns)).astype(np.float64)
        return counts

    taken = begun(records.time_ns[first:last]) * cost.per_line_ns
    taken = taken + begun(host.start_ns[host.kind == OP]) * per_op_ns
    taken = taken + begun(host.start_ns[host.kind == RUNTIME]) * per_launch_ns
    room: Floats = np.where(line.kind == SYNC, 0.0, (1 - LEAST_SHARE) * line.host_ns)
    left: Floats = line.host_ns - _spread(taken, room)
    return replace(line, host_ns=left)


def _spread(taken: Floats, room: Floats) -> Floats:
    """``taken`` with what a segment has no ``room`` for left to those behind it.

    A record is made at the begin of an operator and completed at its end, in the time of what follows.
    """
    owed: Floats = np.cumsum(taken - room)
    owed = owed - np.minimum(np.minimum.accumulate(owed), 0.0)
    found: Floats = taken + np.concatenate([[0.0], owed[:-1]]) - owed
    return found


def by_line(line: Timeline, places: Places, profile: Profile) -> Timeline:
    """Host time at each line brought to what attribution says the line costs.

    Line events slow pure Python far more than operators, which attribution sees from samples taken
    without them. Only on a CPU: there a line's cost is its host time.
    """
    if len(line.kernel_ns):
        return line
    costs = {(cost.file, cost.line): cost.step_ms for cost in profile.lines}
    costs["", 0] = profile.unattributed.step_ms
    seen = np.bincount(line.place, line.host_ns, len(places.lines))
    known = np.array([costs.get(place, -1.0) for place in places.lines]) * 1e6 * line.steps
    usable = (known >= 0) & (seen > 0)
    # What attribution does not list is scaled as the rest is, on the whole.
    usual = known[usable].sum() / seen[usable].sum() if usable.any() else 1.0
    factor = np.where(usable, known / np.maximum(seen, 1.0), usual)
    return replace(line, host_ns=line.host_ns * factor[line.place])


def _solve(value: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """The scale at which a growing function is ``wanted``, by halving."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = value(middle)
        if abs(found - wanted) < _EXACT * wanted:
            return middle
        if found < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
