"""What the profiler added, taken out: first what each record cost, where it fell; then one scale for
host time, so that the replay of the unchanged window gives the step as it was timed without the profiler.

A step that the device bounds does not show the host's scale. Then the records' cost and the scale are the
usual ones (``USUAL_OP_NS``, ``USUAL``), and what is left is the device's own (clocks differ between two
windows).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from warpline.attribution.overhead import LEAST_SHARE, overhead
from warpline.model import costs
from warpline.model.profile import Profile
from warpline.simulate.changes import beginning
from warpline.simulate.replay import Clock, Feed, host_done, replay
from warpline.simulate.timeline import LAUNCH, SYNC, WORK, Places, Timeline
from warpline.trace.columns import OP, RUNTIME, Floats, Ints, Trace
from warpline.wire.run import Facts

#: What recording an operator costs, its launch included, in runs that their hosts bound. Taking launches off
#: apart left scales that differed more between scripts, not less.
USUAL_OP_NS = costs.value("op-record-ns")
#: What of the host's time is its own once that is taken off.
USUAL = costs.value("host-own")
#: What the runner measured for a record there, and beside it for a launch's: medians of 16 processes. Each
#: lay within SWING times of that and did not foretell what records cost in its own process, so only what is
#: beyond says something: that the machine is another.
MEASURED_OP_NS, MEASURED_LAUNCH_NS = costs.value("measured-op-ns"), costs.value("measured-launch-ns")
SWING = costs.bound("other-machine")
#: The step counts as explained by the device alone when the replay comes this close.
CLOSE = costs.bound("explained")
#: What little is left is the host's where so much more of it explains it, else the device's.
NEARLY = costs.bound("host-explains")
#: The device's clocks do not differ by more between two windows of one process.
QUICKEST = costs.bound("device-clock")
#: A little more than what the device alone takes.
JUST = 1.001
#: A host so quick that only the device counts.
LEAST = costs.bound("least-host")
#: A host this much slower has to be done later by this share of that, or it waits for the device, not the
#: other way round.
NUDGE, OWN = costs.bound("host-nudge"), costs.bound("host-sets-pace")
#: However slow the host was.
MOST = costs.bound("most-host")
#: Steps whose segments are as many, but for this share, do the same.
ALIKE = costs.bound("steps-alike")
_HALVINGS, _EXACT = 24, 1e-4


def calibrated(
    timeline: Timeline,
    step_ns: float,
    feed: Feed | None,
    facts: Facts | None = None,
    quickest_ns: float | None = None,
) -> Clock:
    """The clock with which the replay takes ``step_ns``.

    Where that does not show what the host takes, it is what ``facts`` say of how far it runs ahead of an idle
    device. ``quickest_ns``: the shortest timed step. Where other processes used the device and it alone
    explains that step, while a usual host would have taken longer, the host is ``LEAST``: all that is known
    of it is that it did not set the pace.
    """
    clock = delays(timeline)
    usual = (_seen_ahead(timeline, clock, feed, facts) if facts is not None else None) or USUAL

    def with_host(scale: float) -> float:
        return replay(timeline, replace(clock, host=scale), feed)

    if not timeline.has_kernels and feed is None:
        whole = with_host(1.0)
        return replace(clock, host=step_ns / whole if whole else 1.0)
    among_others = facts is not None and shared(facts)
    least, most = with_host(LEAST), with_host(usual)
    if among_others and quickest_ns is not None and CLOSE * quickest_ns < least and quickest_ns < most:

        def stretched(scale: float) -> float:
            return replay(timeline, replace(clock, host=LEAST, device=scale), feed)

        return replace(clock, host=LEAST, device=_solve(stretched, step_ns, 0.1, 8.0))
    if most < CLOSE * step_ns and feed is None and among_others:
        # What others do on the device and its cores makes the timed steps longer, and the run does not show
        # which part: the whole step is slower, and what sets its pace is what would without them.
        def slowed(scale: float) -> float:
            return replay(timeline, replace(clock, host=usual * scale, device=scale), feed)

        scale = _solve(slowed, step_ns, 1.0, 8.0)
        return replace(clock, host=usual * scale, device=scale)
    if most < CLOSE * step_ns:
        return replace(clock, host=_solve(with_host, step_ns, usual, 8.0))
    # Where the device explains the step without a host's help, the host is not quicker for it: how
    # quick it is decides what is left once the device's work shrinks.
    if least < CLOSE * step_ns:
        if most > step_ns:
            return replace(clock, host=_solve(with_host, step_ns, LEAST, usual))
        if step_ns <= with_host(usual * NEARLY):
            return replace(clock, host=_solve(with_host, step_ns, usual, usual * NEARLY))

    host = usual

    def with_device(scale: float) -> float:
        return replay(timeline, replace(clock, host=host, device=scale), feed)

    if with_device(QUICKEST) > step_ns:
        # No clock explains that: a host that follows or waits for the device was quicker than usual.
        host = _solve(with_host, max(step_ns, JUST * least), LEAST, usual)
    if abs(with_device(1.0) - step_ns) < _EXACT * step_ns:
        return replace(clock, host=host)  # something else sets the pace, whatever the device's clock
    return replace(clock, host=host, device=_solve(with_device, step_ns, 0.1, 2.0))


def shared(facts: Facts) -> bool:
    """Whether other processes had the device open while the steps were timed."""
    return bool(facts.nvml.other_processes)


def _seen_ahead(timeline: Timeline, clock: Clock, feed: Feed | None, facts: Facts) -> float | None:
    """The host's scale by how far it ran ahead of an idle device: in a whole step, or where it waited for
    the device in that, up to its backward; what comes after counts as usual then. None where it waited
    there too, or was not seen.
    """
    if not timeline.has_kernels:
        return None
    step = int(np.searchsorted(timeline.step, 1))
    found = _of_part(timeline, step, clock, feed, facts.host_step_ns)
    if found is not None:
        return found
    forward = int(np.argmax(timeline.backward[:step]))
    found = _of_part(timeline, forward, clock, feed, facts.host_forward_ns) if forward else None
    if found is None:
        return None
    share = float(timeline.host_ns[:forward].sum() / timeline.host_ns[:step].sum())
    return share * found + (1 - share) * USUAL


def _of_part(
    timeline: Timeline, count: int, clock: Clock, feed: Feed | None, seen_ns: float | None
) -> float | None:
    """The scale with which the host is done with the first ``count`` segments when it was; None where that
    hardly moves it, as it waits for the device all the same."""
    if seen_ns is None:
        return None
    part = beginning(timeline, count)

    def done(scale: float) -> float:
        return host_done(part, replace(clock, host=scale), feed)

    found = _solve(done, seen_ns, LEAST, MOST)
    own = (done(found * (1 + NUDGE)) - done(found)) / (NUDGE * seen_ns)
    return found if own >= OWN and abs(done(found) - seen_ns) < NUDGE * seen_ns else None


def evened(timeline: Timeline) -> Timeline:
    """Give each captured step the host time of the median step, as far as they make as many calls.

    On a busy machine one step's host was up to twice as slow as the next one's, in every call. A capture has
    too few steps to average that."""
    own = (timeline.kind == WORK) | (timeline.kind == LAUNCH)
    times = np.bincount(timeline.step[own], timeline.host_ns[own], timeline.steps)
    counts = np.bincount(timeline.step[own], minlength=timeline.steps)
    alike = np.abs(counts - np.median(counts)) <= ALIKE * np.median(counts)
    if not times.all() or not alike.any():
        return timeline
    factor = np.where(alike, np.median(times[alike]) / times, 1.0)
    return replace(
        timeline, host_ns=np.where(own, timeline.host_ns * factor[timeline.step], timeline.host_ns)
    )


def delays(timeline: Timeline) -> Clock:
    """The device's own delays, read off the trace: between queued kernels, and from launch to start."""
    if not timeline.has_kernels:
        return Clock()
    by = np.lexsort((timeline.kernel_start, timeline.stream))
    # Nanoseconds since 1970 are beyond what a float holds exactly.
    start, stream = (timeline.kernel_start - timeline.kernel_start.min())[by], timeline.stream[by]
    end = start + timeline.kernel_ns[by]
    gap = (start[1:] - end[:-1])[(stream[1:] == stream[:-1])]
    close = gap[(gap >= 0) & (gap < 3_000)]
    return Clock(gap_ns=float(np.median(close))) if len(close) else Clock()


def unblocked(timeline: Timeline) -> Timeline:
    """Calls that were held up (a full queue, a wait inside) brought down to a usual one's time.

    The replay makes the waits again; without this they would count twice. What a call that waited for its
    copy still did once the copy had ended (moving it out of the driver's own memory) comes after the wait,
    in the segment behind it.
    """
    host = timeline.host_ns.copy()
    after = _after_copies(timeline)
    for kind in (LAUNCH, SYNC):
        rows = timeline.kind == kind
        if rows.any():
            usual = float(np.median(host[rows]))
            limit = 5 * usual if kind == LAUNCH else usual
            host[rows] = np.where(host[rows] > limit, usual, host[rows])
    held = np.flatnonzero((host[:-1] < timeline.host_ns[:-1]) & (timeline.kind[1:] == WORK))
    host[held + 1] += after[held]
    return replace(timeline, host_ns=host)


def _after_copies(timeline: Timeline) -> Floats:
    """How long each segment's call went on after the copy that it waited for, in ns."""
    found = np.zeros(len(timeline.host_ns))
    copies = np.flatnonzero(timeline.blocking)
    segment = np.searchsorted(timeline.first, copies, "right") - 1
    ended = timeline.kernel_start[copies] - timeline.start_ns[segment] + timeline.kernel_ns[copies]
    np.maximum.at(found, segment, np.maximum(timeline.host_ns[segment] - ended, 0.0))
    return found


def relieved(trace: Trace, timeline: Timeline, step_ns: float) -> Timeline:
    """What each line record and each recorded op cost, taken off where it fell.

    The slowdown says what an op's record cost at least; a step that the device bounds hides it.
    """
    cost = overhead(trace, step_ns, trace.window_ns)
    records, host = trace.records, trace.host
    first, last = records.first[trace.main], records.first[trace.main + 1]

    def begun(times: Ints) -> Floats:
        inside = times[(times >= timeline.start_ns[0]) & (times < trace.window_ns[1])]
        at = np.searchsorted(timeline.start_ns, inside, "right") - 1
        counts: Floats = np.bincount(at, minlength=len(timeline.start_ns)).astype(np.float64)
        return counts

    ops, calls = begun(host.start_ns[host.kind == OP]), begun(host.start_ns[host.kind == RUNTIME])
    per_op_ns = max(cost.per_op_ns, _op_record_ns(trace, calls.sum() / max(1.0, ops.sum())))
    taken = begun(records.time_ns[first:last]) * cost.per_line_ns + ops * per_op_ns
    room: Floats = np.where(timeline.kind == SYNC, 0.0, (1 - LEAST_SHARE) * timeline.host_ns)
    left: Floats = timeline.host_ns - _spread(taken, room)
    return replace(timeline, host_ns=left)


def _op_record_ns(trace: Trace, calls_an_op: float) -> float:
    """What an operator's record cost, its calls' included: the usual, or on another machine the measured."""
    facts = trace.facts
    if facts.op_record_ns is None:
        return USUAL_OP_NS
    measured = facts.op_record_ns + (facts.launch_record_ns or 0.0) * calls_an_op
    slower = measured / (MEASURED_OP_NS + MEASURED_LAUNCH_NS * calls_an_op)
    return USUAL_OP_NS if 1 / SWING <= slower <= SWING else measured


def _spread(taken: Floats, room: Floats) -> Floats:
    """``taken`` with what a segment has no ``room`` for left to those behind it.

    A record is made at the start of an operator and completed at its end, in the time of what follows.
    """
    owed: Floats = np.cumsum(taken - room)
    owed = owed - np.minimum(np.minimum.accumulate(owed), 0.0)
    found: Floats = taken + np.concatenate([[0.0], owed[:-1]]) - owed
    return found


def by_line(timeline: Timeline, places: Places, profile: Profile) -> Timeline:
    """Host time at each line brought to what attribution says the line costs.

    Line events slow pure Python far more than operators, which attribution sees from samples taken
    without them. Only on a CPU: there a line's cost is its host time.
    """
    if timeline.has_kernels:
        return timeline
    costs = {(cost.file, cost.line): cost.step_ms for cost in profile.lines}
    costs["", 0] = profile.unattributed.step_ms
    seen = np.bincount(timeline.place, timeline.host_ns, len(places.lines))
    known = np.array([costs.get(place, -1.0) for place in places.lines]) * 1e6 * timeline.steps
    usable = (known >= 0) & (seen > 0)
    # What attribution does not list is scaled as the rest is, on the whole.
    usual = known[usable].sum() / seen[usable].sum() if usable.any() else 1.0
    factor = np.where(usable, known / np.maximum(seen, 1.0), usual)
    return replace(timeline, host_ns=timeline.host_ns * factor[timeline.place])


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
