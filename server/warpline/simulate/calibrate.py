"""Removes the profiler's overhead from the captured window.

First, the cost of each record is subtracted where it occurred. Then one scale is found for host time, so that
the replay of the unchanged window takes as long as the step timed without the profiler.

A device-bound step does not show the host's scale. The record cost and the scale are the usual ones then
(``USUAL_OP_NS``, ``USUAL``), and the remaining difference is a scale of device time (the device's clock rate
may differ between two windows). Where the usual host would take longer than the step, both are scaled, each
as little as its spread allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from warpline.attribution.driver import held_back
from warpline.attribution.interrupted import own_share
from warpline.attribution.overhead import LEAST_SHARE, overhead
from warpline.attribution.scene import window_of
from warpline.model import costs
from warpline.model.profile import Profile
from warpline.simulate.replay import Clock, Feed, host_done, replay
from warpline.simulate.timeline import LAUNCH, SYNC, WORK, Places, Timeline, beginning
from warpline.trace.columns import OP, RUNTIME, Floats, Ints, Trace
from warpline.wire.run import Facts

#: Cost of recording an operator, its launch included, in host-bound runs. With a cost of its own for
#: launches, the scales differed more between scripts, not less.
USUAL_OP_NS = costs.value("op-record-ns")
#: Share of the host time, less that cost, that a step takes without the profiler.
USUAL = costs.value("host-own")
#: The runner's own measurement of a record's cost, and of a launch record's, in those runs: medians of 16
#: processes. Each process was within a factor of SWING of the median, and its value did not predict the cost
#: of records in that process. Only a value outside that range is used: the machine is a different one.
MEASURED_OP_NS, MEASURED_LAUNCH_NS = costs.value("measured-op-ns"), costs.value("measured-launch-ns")
SWING = costs.bound("other-machine")
#: The device alone explains the step if a replay with a very fast host comes this close to it.
CLOSE = costs.bound("explained")
#: If a host slower by up to this factor explains the remaining difference, the host is scaled, else the
#: device.
NEARLY = costs.bound("host-explains")
#: The device's clocks do not differ by more between two windows of one process.
QUICKEST = costs.bound("device-clock")
#: A little more than what the device alone takes.
JUST = 1.001
#: Scale of a host so fast that only the device matters.
LEAST = costs.bound("least-host")
#: The host sets the pace if slowing it down by NUDGE delays its end by at least OWN times as much. Otherwise
#: it waits for the device.
NUDGE, OWN = costs.bound("host-nudge"), costs.bound("host-sets-pace")
#: Scale of the slowest host that is considered.
MOST = costs.bound("most-host")
#: Steps whose numbers of segments differ by at most this share do the same work.
ALIKE = costs.bound("steps-alike")
#: How far, in logarithms, the host's scale usually is from ``USUAL``, and from what was seen ahead of the
#: device; and the device's scale in a step that it explains alone, with its own spread.
SPREAD, SEEN_SPREAD = costs.value("host-spread"), costs.value("seen-spread")
ALONE, ALONE_SPREAD = costs.value("device-alone"), costs.value("device-spread")
_HALVINGS, _EXACT = 24, 1e-4
#: Scales of the host, and of the device, that are compared.
_SCALES, _DEVICES = 9, 41


def calibrated(
    timeline: Timeline,
    step_ns: float,
    feed: Feed | None,
    facts: Facts | None = None,
    quickest: tuple[float, Timeline] | None = None,
) -> Clock:
    """The clock with which the replay takes ``step_ns``.

    If the step does not show the host's scale, the scale comes from ``facts``, which say how far the host ran
    ahead of an idle device. ``quickest``: how long quick steps took, and the timeline with the device as
    quick as in these. If other processes used the device, the device alone explains such a step, and a usual
    host would have taken longer, the run shows only that the host did not set the pace. Its scale is then the
    slowest that allows such a step if the host was seen to take less than that, else ``LEAST``.
    """
    clock = delays(timeline)
    seen = seen_ahead(timeline, clock, feed, facts) if facts is not None else None
    usual = seen or USUAL

    def with_host(scale: float) -> float:
        return replay(timeline, replace(clock, host=scale), feed)

    if not timeline.has_kernels and feed is None:
        whole = with_host(1.0)
        return replace(clock, host=step_ns / whole if whole else 1.0)
    among_others = facts is not None and shared(facts)
    least, most = with_host(LEAST), with_host(usual)
    if among_others and quickest is not None and _of_device(*quickest, clock, feed) and quickest[0] < most:
        host = LEAST
        if seen is not None and facts is not None and (facts.host_step_ns or np.inf) < quickest[0]:
            host = _solve(with_host, max(quickest[0], JUST * least), LEAST, seen)

        def stretched(scale: float) -> float:
            return replay(timeline, replace(clock, host=host, device=scale), feed)

        return replace(clock, host=host, device=_solve(stretched, step_ns, 0.1, 8.0))
    if most < CLOSE * step_ns and feed is None and among_others:
        # Other processes on the device and the cores make the timed steps longer. The run does not show which
        # part of the step, so host and device get the same scale, and the bottleneck stays the same.
        def slowed(scale: float) -> float:
            return replay(timeline, replace(clock, host=usual * scale, device=scale), feed)

        scale = _solve(slowed, step_ns, 1.0, 8.0)
        return replace(clock, host=usual * scale, device=scale)
    if most < CLOSE * step_ns:
        throttled = _throttled(timeline, replace(clock, host=usual), step_ns, feed, facts)
        return throttled or replace(clock, host=_solve(with_host, step_ns, usual, 8.0))
    # If the device alone explains the step, the host is still not infinitely fast: its speed decides how long
    # the step takes once the device has less work.
    if most > step_ns:
        spread = SPREAD if seen is None else SEEN_SPREAD
        device = _likeliest_device(with_host, (least, most), step_ns, usual, spread)
        quick = replace(clock, device=device)
        host = _solve(lambda scale: replay(timeline, replace(quick, host=scale), feed), step_ns, LEAST, usual)
        if abs(replay(timeline, replace(quick, host=host), feed) - step_ns) < _EXACT * step_ns:
            return replace(quick, host=host)
    elif least < CLOSE * step_ns and step_ns <= with_host(usual * NEARLY):
        return replace(clock, host=_solve(with_host, step_ns, usual, usual * NEARLY))
    else:
        host = usual

    def with_device(scale: float) -> float:
        return replay(timeline, replace(clock, host=host, device=scale), feed)

    if abs(with_device(1.0) - step_ns) < _EXACT * step_ns:
        return replace(clock, host=host)  # something else sets the pace: the device's scale does not matter
    return replace(clock, host=host, device=_solve(with_device, step_ns, 0.1, 2.0))


def _likeliest_device(
    with_host: Callable[[float], float],
    ends: tuple[float, float],
    step_ns: float,
    usual: float,
    spread: float,
) -> float:
    """The device's scale where a ``usual`` host, with the device as recorded, takes longer than the step.

    Either may have been quicker than that. Of all pairs of scales with which the replay takes ``step_ns``,
    this is the one whose parts are nearest to the usual, each in units of its spread. A replay with both
    scales is taken for ``device * with_host(host / device)``. ``ends``: ``with_host`` of ``LEAST`` and of
    ``usual``.
    """
    scales = np.geomspace(LEAST, usual, _SCALES)
    between = [with_host(scale) for scale in scales[1:-1].tolist()]
    taken = np.maximum.accumulate([ends[0], *between, ends[1]])
    best, found = np.inf, QUICKEST
    for device in np.linspace(1.0, QUICKEST, _DEVICES).tolist():
        wanted = step_ns / device
        if wanted < taken[0]:
            continue  # too long with any host
        # Of several scales that make no difference the largest.
        last = int(np.searchsorted(taken, wanted, "right")) - 1
        host = float(scales[last])
        if last + 1 < _SCALES:
            part = (wanted - taken[last]) / (taken[last + 1] - taken[last])
            host *= float(scales[last + 1] / scales[last]) ** part
        host = min(usual, host * device)
        far = (np.log(host / usual) / spread) ** 2 + (np.log(device / ALONE) / ALONE_SPREAD) ** 2
        if far < best:
            best, found = float(far), device
        if last + 1 == _SCALES:
            break  # the usual host explains it
    return found


def _of_device(step_ns: float, timeline: Timeline, clock: Clock, feed: Feed | None) -> bool:
    """Whether the device alone explains such a step."""
    return CLOSE * step_ns < replay(timeline, replace(clock, host=LEAST), feed)


def _throttled(
    timeline: Timeline, clock: Clock, step_ns: float, feed: Feed | None, facts: Facts | None
) -> Clock | None:
    """A slower device, where the driver says that its clock was held back by enough to explain the step."""
    slowest = held_back(facts.nvml) if facts is not None else 1.0

    def with_device(scale: float) -> float:
        return replay(timeline, replace(clock, device=scale), feed)

    if slowest == 1.0 or with_device(slowest) < step_ns:
        return None
    return replace(clock, device=_solve(with_device, step_ns, 1.0, slowest))


def shared(facts: Facts) -> bool:
    """Whether other processes had the device open while the steps were timed."""
    return bool(facts.nvml.other_processes)


def seen_ahead(timeline: Timeline, clock: Clock, feed: Feed | None, facts: Facts) -> float | None:
    """The host's scale, from how far it ran ahead of an idle device in a whole step.

    If it waited for the device in that step, only the part before the backward pass is used, and the rest of
    the step has the usual scale. None if it waited there too, or if this was not measured.
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
    """The scale with which the host finishes the first ``count`` segments at ``seen_ns``.

    None if the scale hardly changes that moment, because the host waits for the device.
    """
    if seen_ns is None:
        return None
    part = beginning(timeline, count)

    def done(scale: float) -> float:
        return host_done(part, replace(clock, host=scale), feed)

    found = _solve(done, seen_ns, LEAST, MOST)
    own = (done(found * (1 + NUDGE)) - done(found)) / (NUDGE * seen_ns)
    return found if own >= OWN and abs(done(found) - seen_ns) < NUDGE * seen_ns else None


def evened(timeline: Timeline) -> Timeline:
    """Scale the host time of each captured step to the median step's, for steps with about as many calls.

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
    """The device's delays: the median gap between queued kernels in the trace; the others have defaults."""
    if not timeline.has_kernels:
        return Clock()
    by = np.lexsort((timeline.kernel_start, timeline.stream))
    # A float cannot hold nanoseconds since 1970 exactly.
    start, stream = (timeline.kernel_start - timeline.kernel_start.min())[by], timeline.stream[by]
    end = start + timeline.kernel_ns[by]
    gap = (start[1:] - end[:-1])[(stream[1:] == stream[:-1])]
    close = gap[(gap >= 0) & (gap < 3_000)]
    return Clock(gap_ns=float(np.median(close))) if len(close) else Clock()


def unblocked(timeline: Timeline) -> Timeline:
    """Reduce calls that were blocked (by a full queue, or by a wait inside) to the time of a typical call.

    The replay adds the waits again; without this they would count twice. A call that waits for its copy may
    go on after the copy has ended (it moves the data out of the driver's own memory). That time is added to
    the next segment, after the wait.
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


def uninterrupted(trace: Trace, timeline: Timeline, step_ns: float) -> Timeline:
    """``timeline`` without what other processes took of the device while kernels ran in the captured steps,
    as far as a step of ``step_ns`` has no room for that."""
    own = own_share(trace, window_of(trace), step_ns)
    recorded = trace.kernels.end_ns - trace.kernels.start_ns
    return replace(timeline, kernel_ns=(recorded * own)[timeline.kernel])


def _after_copies(timeline: Timeline) -> Floats:
    """Time in ns from the end of the copy that each segment's call waited for to the end of the call."""
    found = np.zeros(len(timeline.host_ns))
    copies = np.flatnonzero(timeline.blocking)
    segment = np.searchsorted(timeline.first, copies, "right") - 1
    ended = timeline.kernel_start[copies] - timeline.start_ns[segment] + timeline.kernel_ns[copies]
    np.maximum.at(found, segment, np.maximum(timeline.host_ns[segment] - ended, 0.0))
    return found


def relieved(trace: Trace, timeline: Timeline, step_ns: float) -> Timeline:
    """Subtract the cost of each line record and of each recorded op from the segment in which it occurred.

    The slowdown gives a lower bound for the cost of an op's record. A device-bound step hides a part of it.
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
    """Cost of an operator's record, its runtime calls included: the measured one on a machine that is much
    faster or slower than the usual ones, else the usual one."""
    facts = trace.facts
    if facts.op_record_ns is None:
        return USUAL_OP_NS
    measured = facts.op_record_ns + (facts.launch_record_ns or 0.0) * calls_an_op
    slower = measured / (MEASURED_OP_NS + MEASURED_LAUNCH_NS * calls_an_op)
    return USUAL_OP_NS if 1 / SWING <= slower <= SWING else measured


def _spread(taken: Floats, room: Floats) -> Floats:
    """``taken``, limited to the ``room`` of each segment; the excess moves to the next segments.

    A record is made at the start of an operator and completed at its end, which is in a later segment.
    """
    owed: Floats = np.cumsum(taken - room)
    owed = owed - np.minimum(np.minimum.accumulate(owed), 0.0)
    found: Floats = taken + np.concatenate([[0.0], owed[:-1]]) - owed
    return found


def by_line(timeline: Timeline, places: Places, profile: Profile) -> Timeline:
    """Scale the host time of each line to the cost that attribution gives it.

    Line events slow pure Python down far more than operators. Attribution corrects this with samples taken
    without line events. Only on a CPU: there a line's cost is its host time. What stores tracebacks gets the
    time that attribution gives them.
    """
    if timeline.has_kernels:
        return timeline
    costs = {cost.place: (cost.step_ms, cost.traceback_ms) for cost in profile.lines}
    costs["", 0] = profile.unattributed.step_ms, 0.0
    seen = np.bincount(timeline.place, timeline.host_ns, len(places.lines))
    stored = np.bincount(timeline.place, timeline.traceback_ns, len(places.lines))
    given = np.array([costs.get(place, (-1.0, 0.0)) for place in places.lines]) * 1e6 * timeline.steps
    known, kept = given[:, 0], given[:, 1]
    usable = (known >= 0) & (seen > 0)
    # Lines that attribution does not list get the mean factor.
    usual = known[usable].sum() / seen[usable].sum() if usable.any() else 1.0
    factor = np.where(usable, known / np.maximum(seen, 1.0), usual)
    apart = usable & (stored > 0) & (seen > stored)
    rest = np.where(apart, (known - kept) / np.maximum(seen - stored, 1.0), factor)
    traceback = (
        timeline.traceback_ns * np.where(apart, kept / np.maximum(stored, 1.0), factor)[timeline.place]
    )
    others = (timeline.host_ns - timeline.traceback_ns) * rest[timeline.place]
    return replace(timeline, host_ns=others + traceback, traceback_ns=traceback)


def with_nodes(timeline: Timeline) -> Timeline:
    """On a CPU, what autograd does between two operators of the backward pass goes to the second one's line:
    it looks its node up, and frees the one before. A change that leaves operators out leaves that out."""
    if timeline.has_kernels:
        return timeline
    called = np.flatnonzero(timeline.op >= 0)
    after = np.searchsorted(called, np.arange(len(timeline.op)))
    inside = (timeline.op < 0) & (after > 0) & (after < len(called))
    rows = np.flatnonzero(inside)
    before, behind = called[after[rows] - 1], called[after[rows]]
    both = timeline.backward[before] & timeline.backward[behind] & (timeline.kind[rows] == WORK)
    place = timeline.place.copy()
    place[rows[both]] = timeline.place[behind[both]]
    return replace(timeline, place=place)


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
