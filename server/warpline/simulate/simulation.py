"""Predicts the step time with a change."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import chain

import numpy as np

from warpline.model import steady
from warpline.model.change import (
    Change,
    ChannelsLast,
    CompiledCalls,
    KeptSamples,
    LargerBatch,
    LoaderWorkers,
    MatmulRate,
    NoAnomalyDetection,
    PadProducts,
    RemoveLaunches,
    Replace,
    Scale,
    Together,
)
from warpline.model.change import Places as Where
from warpline.model.profile import Profile
from warpline.model.report import Predicted, Resource
from warpline.simulate import calibrate, compiled, device, layout, limits, loading, pauses, precision
from warpline.simulate.changes import Changed
from warpline.simulate.replay import Feed, replay
from warpline.simulate.timeline import Places, Timeline, timeline_of
from warpline.trace.columns import Floats, Trace

#: A predicted speed-up below this is no gain.
GAINS = 1.01
#: The share of the timed steps that are quick ones. A single one proves nothing: it may only follow one in
#: which the host was late.
QUICK = 0.1


class Simulation:
    """The captured window of one trace, ready to be replayed with changes."""

    def __init__(self, trace: Trace, places: Places, profile: Profile | None = None) -> None:
        """``profile``: attribution's result for the same trace. On a CPU lines are scaled to the cost it
        has."""
        self._trace, self._profile = trace, profile
        self._rates = device.rates(trace)
        self._cores = int(trace.facts.flags.cpu_count or os.cpu_count() or 1)
        spare = trace.facts.flags.cores_of_workers if trace.manifest.device.kind == "cpu" else None
        #: Cores that loader workers can use, some of them only while the step waits (``_least``).
        self._spare = self._cores if spare is None else spare
        timed = trace.manifest.timed_ns
        window = (trace.window_ns[1] - trace.window_ns[0]) / trace.steps
        #: Mean step time without the profiler, and without a chance collection; that of the captured window
        #: if no step was timed.
        self.step_ns = steady.mean_ns(trace.manifest, trace.facts) or float(window)
        timeline = calibrate.unblocked(timeline_of(trace, places))
        if timeline.has_kernels:
            timeline = calibrate.uninterrupted(trace, timeline, self.step_ns)
            timeline = calibrate.relieved(trace, timeline, self.step_ns)
            collecting = pauses.pauses(trace, timeline)
            working = calibrate.evened(replace(timeline, host_ns=timeline.host_ns - collecting))
            timeline = calibrate.evened(timeline)
        timeline = timeline if profile is None else calibrate.by_line(timeline, places, profile)
        self._timeline = calibrate.with_nodes(timeline)
        self._changed = Changed(places, self._rates, trace.names, compiled.launch_ns(self._timeline))
        self._feed = loading.present_feed(self._timeline, trace.facts, self.step_ns, window)
        quickest = None
        if timed and self._timeline.has_kernels:
            quick_ns = float(np.quantile(timed, QUICK))
            quickest = (quick_ns, calibrate.uninterrupted(trace, self._timeline, quick_ns))
        self._clock = calibrate.calibrated(self._timeline, self.step_ns, self._feed, trace.facts, quickest)
        if quickest is not None:
            self._know_pauses(working, collecting, quickest)

    def _know_pauses(self, working: Timeline, collecting: Floats, quickest: tuple[float, Timeline]) -> None:
        """Calibrate without the garbage collections, if most of the timed steps had none."""
        trace, feed = self._trace, self._feed
        between_ns = pauses.between(trace, self.step_ns)
        if between_ns >= calibrate.CLOSE * self.step_ns or not collecting.any():
            return
        clock = calibrate.calibrated(working, between_ns, feed, trace.facts, quickest)
        timeline = pauses.added(working, collecting, clock, feed, self.step_ns)
        if timeline is not None:
            self._timeline, self._clock = timeline, clock

    @property
    def replayed_ms(self) -> float:
        """The replayed step time without a change, in ms."""
        return replay(self._timeline, self._clock, self._feed) / 1e6

    def predict(self, change: Change) -> Predicted | None:
        """The step with ``change``, per present batch; None if the change cannot be simulated.

        Deterministic: the same trace and change give the same figures.
        """
        made = self._made(change)
        if made is None:
            return None
        timeline, feed, work = made
        parts = _flat((change,))
        step_ns = max(replay(timeline, self._clock, feed), self._least(timeline, feed)) / work
        stalled = max((one.stalled_ms for one in parts if isinstance(one, LoaderWorkers)), default=0.0)
        step_ns *= self.step_ns / max(1.0, self.step_ns - stalled * 1e6)
        if step_ns <= 0:
            return None
        speedup = self.step_ns / step_ns
        at_most = any(isinstance(one, Scale) and one.at_most for one in parts)
        # The host's scale is unknown (LEAST): it may set the pace once the device takes less time.
        bound = speedup > GAINS and (at_most or self._clock.host == calibrate.LEAST)
        # The compiler's output cannot be predicted.
        guessed = any(
            isinstance(one, (RemoveLaunches, CompiledCalls))
            or (isinstance(one, (Scale, PadProducts)) and one.assumed)
            or (isinstance(one, NoAnomalyDetection) and self._trace.facts.traceback_ns is None)
            for one in parts
        )
        return Predicted(step_ns / 1e6, speedup, "bound" if bound else "estimate" if guessed else "simulated")

    def limit(self, change: Change) -> Resource:
        """The resource that bounds the step with ``change``: the step shortens most if its time is halved."""
        line, feed, _ = self._made(change) or (self._timeline, self._feed, 1.0)
        return limits.limiting_resource(line, self._clock, feed, self._trace.names)

    def left(self, made: Change, change: Change) -> float:
        """The share of the time at the lines of ``change`` that ``made`` leaves, per present batch: of the
        host's or of the device's, whichever is larger."""
        line, _, work = self._made(made) or (self._timeline, self._feed, 1.0)
        places = [getattr(one, "places", ()) for one in _flat((change,))]
        where = tuple(chain(*places)) if all(places) else ()
        return max(self._changed.left(self._timeline, line, where)) / work

    def floor_ms(self) -> float:
        """Lower bound of the step time in ms: the device's least time for the step's operations and bytes."""
        return limits.floor_ms(self._timeline, self._clock, self._rates, self._profile)

    def _made(self, change: Change) -> tuple[Timeline, Feed | None, float] | None:
        """``(timeline, loader's feed, batches a step)`` with ``change``; None if it cannot be simulated."""
        changes = _added_up(_flat((change,)))
        timeline, feed, work = self._timeline, self._feed, 1.0
        for one in changes:
            if isinstance(one, LoaderWorkers):
                feed = self._with_workers(one)
            elif isinstance(one, KeptSamples):
                feed = Feed(0.0, 1, one.batch_ms * 1e6)
            elif isinstance(one, MatmulRate):
                changed = precision.at_precision(self._trace, timeline, one, self._changed, self._rates)
                if changed is None:
                    return None
                timeline = changed
            elif isinstance(one, PadProducts):
                if any(isinstance(each, MatmulRate) and each.precision == one.precision for each in changes):
                    timeline = precision.padded(self._trace, timeline, one, self._changed)
            elif isinstance(one, ChannelsLast):
                timeline = layout.channels_last(self._trace, timeline, one, self._changed, self._rates)
            else:
                timeline = self._changed.make(timeline, one)
            if isinstance(one, LargerBatch):
                work *= one.factor
                feed = replace(feed, period_ns=feed.period_ns * one.factor) if feed else None
        return timeline, feed, work

    def _with_workers(self, change: LoaderWorkers) -> Feed | None:
        room = int((self._cores if change.waiting else self._spare) / change.cores)
        if room < 1:
            return self._feed  # workers and operators would take turns
        usable = replace(change, workers=min(change.workers, room))
        return loading.changed_feed(self._timeline, usable, self._clock.host, self._feed)

    def _least(self, timeline: Timeline, feed: Feed | None) -> float:
        """Lower bound of the step in ns: the work of host and workers, divided by the number of cores."""
        if feed is None or feed is self._feed:
            return 0.0
        spent, batches = loading.waited_ns(timeline)
        own = (float(timeline.host_ns.sum()) - spent) * self._clock.host
        return (own + feed.cost_ns * batches) / timeline.steps / max(1, self._cores)


def _added_up(changes: list[Change]) -> list[Change]:
    """``changes`` with one in the place of all that take different parts of the time at the same places."""
    parts: dict[tuple[Where, bool], Scale] = {}
    for one in changes:
        if isinstance(one, Scale) and one.apart:
            before = parts.get((one.places, one.at_most))
            parts[one.places, one.at_most] = (
                one
                if before is None
                else replace(
                    before,
                    device=max(0.0, before.device + one.device - 1),
                    host=max(0.0, before.host + one.host - 1),
                )
            )
    others = [one for one in changes if not (isinstance(one, Scale) and one.apart)]
    return [*parts.values(), *others]


def _flat(changes: tuple[Change, ...]) -> list[Change]:
    found: list[Change] = []
    for one in changes:
        if isinstance(one, Replace):  # nothing is known of it: see warpline.probing
            one = one.otherwise
        found += _flat(one.changes) if isinstance(one, Together) else [one]
    return found
