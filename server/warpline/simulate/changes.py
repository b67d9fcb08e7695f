"""Applies a change to a timeline: each function returns the changed timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.model.change import (
    Change,
    CompiledCalls,
    Fuse,
    FuseOptimizer,
    LargerBatch,
    NoAnomalyDetection,
    OverlapCopies,
    RemoveLaunches,
    RemoveSyncs,
    Scale,
)
from warpline.model.change import Places as Where
from warpline.model.kernel_name import turns_layout
from warpline.simulate import compiled
from warpline.simulate.device import Rates
from warpline.simulate.timeline import LAUNCH, LOADER, SYNC, WORK, Places, Timeline, without
from warpline.simulate.work import FIXED, OTHER, PRODUCT
from warpline.trace.columns import Bools, Floats, Ints, take

#: Kernels that a multi-tensor optimizer launches per step.
OPTIMIZER_LAUNCHES = round(costs.value("optimizer-launches"))
_NORM = "batch_norm"
#: A kernel shorter than this does not fill the device: more data does not make it longer.
FLOOR_NS = costs.value("short-kernel-ns")


class Changed:
    """Applies changes to timelines of one trace."""

    def __init__(
        self, places: Places, rates: Rates | None, names: Sequence[str] = (), launch_ns: float = 0.0
    ) -> None:
        """``names``: what ``Timeline.kernel_name`` and ``Timeline.op_name`` index. ``launch_ns``: host time
        of an elementwise launch of the run."""
        self._number = {place: at for at, place in enumerate(places.lines)}
        self._turning = [at for at, name in enumerate(names) if turns_layout(name)]
        self._norms = [at for at, name in enumerate(names) if name.startswith("aten::") and _NORM in name]
        self._called = [at for at, name in enumerate(names) if _is_called(name)]
        self._rates, self._launch_ns = rates, launch_ns
        self._lines = places.lines

    def at(self, column: Ints, where: Where) -> Bools:
        """Which rows of a ``place`` column are at ``where``; all rows if it is empty."""
        if not where:
            return np.ones(len(column), bool)
        numbers = [self._number[place] for place in where if self._number.get(place)]
        found: Bools = np.isin(column, numbers)
        return found

    def left(self, before: Timeline, after: Timeline, where: Where) -> tuple[float, float]:
        """The shares of the host's and of the device's time at ``where`` that a change leaves."""

        def left(named: str, place: str) -> float:
            now, then = (
                float(getattr(one, named)[self.at(getattr(one, place), where)].sum())
                for one in (before, after)
            )
            return then / now if now else 0.0

        return left("host_ns", "place"), left("kernel_ns", "kernel_place")

    def turned(self, timeline: Timeline, where: Where) -> Bools:
        """Kernels at ``where`` that convert a tensor between NCHW and NHWC for the tensor cores."""
        found: Bools = np.isin(timeline.kernel_name, self._turning) & self.at(timeline.kernel_place, where)
        return found

    def make(self, timeline: Timeline, change: Change) -> Timeline:
        """The timeline with ``change``; unchanged for changes with a module of their own (loading, layout,
        precision)."""
        match change:
            case OverlapCopies():
                return self._overlap_copies(timeline, change)
            case RemoveSyncs():
                return self._remove_syncs(timeline, change)
            case Fuse():
                return self._fuse(timeline, change)
            case FuseOptimizer():
                return self._fuse_optimizer(timeline, change)
            case RemoveLaunches():
                return self._remove_launches(timeline, change)
            case CompiledCalls():
                return self._compiled_calls(timeline, change)
            case NoAnomalyDetection():
                return self._no_anomaly_detection(timeline, change)
            case LargerBatch():
                return self._larger_batch(timeline, change)
            case Scale():
                return self._scale(timeline, change)
            case _:
                return timeline

    def _overlap_copies(self, timeline: Timeline, change: OverlapCopies) -> Timeline:
        lines = self.at(timeline.place, change.places)
        here = timeline.copies & lines
        copied = np.repeat(here, np.diff(timeline.first))
        # The call of a copy waits for it: the trace has a sync on the same line for that.
        waits = lines & _after(here) & (timeline.kind == SYNC)
        shortest = np.where(here, _typical(timeline, LAUNCH), np.where(waits, 0.0, np.inf))
        return replace(
            timeline,
            host_ns=np.minimum(timeline.host_ns, shortest),
            kind=np.where(waits, WORK, timeline.kind),
            kernel_ns=np.where(copied, timeline.kernel_ns / change.rate_factor, timeline.kernel_ns),
            blocking=timeline.blocking & ~copied,
        )

    def _remove_syncs(self, timeline: Timeline, change: RemoveSyncs) -> Timeline:
        here = self.at(timeline.place, change.places)
        syncs = here & ((timeline.kind == SYNC) | timeline.copies)
        if change.keep > 0:
            # Keep every n-th synchronization, counted from the n-th: values are read later, never earlier.
            every = max(1, round(1 / change.keep))
            syncs = syncs & ((np.cumsum(syncs) % every) != 0)
        gone = np.repeat(syncs, np.diff(timeline.first))
        kept = replace(
            timeline,
            host_ns=np.where(syncs, 0.0, timeline.host_ns),
            kind=np.where(syncs & (timeline.kind == SYNC), WORK, timeline.kind),
        )
        return without(kept, gone)

    def _fuse(self, timeline: Timeline, change: Fuse) -> Timeline:
        if change.keep is not None:
            return self._thinned(timeline, change, change.keep)
        if change.shares:
            return self._thinned(timeline, *self._as_whole_lines(timeline, change))
        products = timeline.kernel_work == PRODUCT
        here = self.at(timeline.kernel_place, change.places) & ~products
        stays = self._stays(timeline, here, change.kernels, per_run=True)
        each = None
        if change.bytes is not None and self._rates is not None and stays.any():
            each = change.bytes / self._rates.bytes_per_s * 1e9 / (int(stays.sum()) / timeline.steps)
        return self._merged(timeline, change.places, stays, each, change.kernels, products)

    def _as_whole_lines(self, timeline: Timeline, change: Fuse) -> tuple[Fuse, float]:
        """``change`` of parts of lines, and the share of their time that it keeps: as much as of the whole
        lines, since the trace does not say which kernels are theirs."""
        merged = self._fuse(timeline, replace(change, shares=()))
        on_host, on_device = self.left(timeline, merged, change.places)
        return replace(change, keep_host=on_host), on_device if timeline.has_kernels else on_host

    def _thinned(self, timeline: Timeline, change: Fuse, keep: float) -> Timeline:
        """Each place keeps the time of what is not fused, and the share ``keep`` of what is."""
        on_host = keep if change.keep_host is None or not timeline.has_kernels else change.keep_host
        device, host = self._left(change, keep), self._left(change, on_host)[timeline.place]
        if change.keep_between is not None:
            between = (timeline.op < 0) & (timeline.kind == WORK)
            host = np.where(between, self._left(change, change.keep_between)[timeline.place], host)
        return replace(
            timeline,
            host_ns=np.where(timeline.kind == LOADER, 1.0, host) * timeline.host_ns,
            kernel_ns=timeline.kernel_ns * device[timeline.kernel_place],
        )

    def _left(self, change: Fuse, keep: float) -> Floats:
        """The share of each line's time that remains; one number per line."""
        factor = np.ones(len(self._lines))
        for place, share in zip(change.places, change.shares or (1.0,) * len(change.places), strict=False):
            factor[self._number.get(place, 0)] = 1 - share * (1 - max(keep, 0.0))
        factor[0] = 1.0
        return factor

    def _fuse_optimizer(self, timeline: Timeline, change: FuseOptimizer) -> Timeline:
        here = self.at(timeline.kernel_place, change.places)
        stays = self._stays(timeline, here, OPTIMIZER_LAUNCHES)
        each = None
        if stays.any():
            # The same bytes move. If their number is unknown, their time is the present kernels' time, less
            # FLOOR_NS / 2 for each.
            moved = float(np.maximum(timeline.kernel_ns[here] - FLOOR_NS / 2, 0).sum()) / timeline.steps
            if change.bytes is not None and self._rates is not None:
                moved = change.bytes / self._rates.bytes_per_s * 1e9
            each = max(FLOOR_NS, moved / (int(stays.sum()) / timeline.steps))
        nothing = np.zeros(len(here), bool)
        return self._merged(timeline, change.places, stays, each, OPTIMIZER_LAUNCHES, nothing)

    def _stays(self, timeline: Timeline, here: Bools, count: int, per_run: bool = False) -> Bools:
        """The ``count`` longest kernels of each step and phase, among those that are ``here``.

        ``per_run``: ``count`` for each time the lines run in the step.
        """
        stays = np.zeros(len(here), bool)
        group = timeline.kernel_step * 2 + timeline.kernel_backward
        for number in np.unique(group[here]).tolist():
            rows = np.flatnonzero(here & (group == number))
            runs = _runs(timeline.kernel_name[rows]) if per_run else 1
            stays[rows[_widest(timeline, rows, count * runs)]] = True
        return stays

    def _merged(
        self, timeline: Timeline, where: Where, stays: Bools, each_ns: float | None, count: int, apart: Bools
    ) -> Timeline:
        """Remove the kernels at ``where``, except those in ``stays``, which then take ``each_ns`` (None: as
        now), and those in ``apart``, which do not change. Host time there shrinks in proportion.
        """
        here = self.at(timeline.kernel_place, where)
        host_here = self.at(timeline.place, where) & (timeline.kind != LOADER)
        if timeline.has_kernels:
            gone = here & ~stays & ~apart
            share = 1 - gone.sum() / max(1, here.sum())
            host = np.where(host_here, timeline.host_ns * share, timeline.host_ns)
            kernel = timeline.kernel_ns if each_ns is None else np.where(stays, each_ns, timeline.kernel_ns)
            return without(replace(timeline, host_ns=host, kernel_ns=kernel), gone)
        # The device is the CPU: an operator's own time is its kernel's. In each step and phase the longest
        # operator stays, since it reads and writes what a fused one has to.
        ops = host_here & (timeline.op >= 0) & (timeline.work != PRODUCT)
        best = np.zeros(len(ops), bool)
        group = timeline.step * 2 + timeline.backward
        for number in np.unique(group[ops]).tolist():
            rows = np.flatnonzero(ops & (group == number))
            called, own = np.unique(timeline.op[rows], return_inverse=True)
            wanted = count * _runs(timeline.op_name[timeline.op[rows]][np.unique(own, return_index=True)[1]])
            widest = np.argsort(-np.bincount(own, timeline.host_ns[rows]), kind="stable")[:wanted]
            best[rows] = np.isin(timeline.op[rows], called[widest])
        calls = max(1, len(np.unique(timeline.op[ops])))
        share = len(np.unique(timeline.op[best])) / calls
        between = host_here & (timeline.op < 0)
        scaled = np.where(between, timeline.host_ns * share, timeline.host_ns)
        return replace(timeline, host_ns=np.where(ops & ~best, 0.0, scaled))

    def _remove_launches(self, timeline: Timeline, change: RemoveLaunches) -> Timeline:
        """The code at some lines is compiled (with ``fuse``), or replayed as a CUDA graph."""
        here = self.at(timeline.place, change.places) & (timeline.kind != LOADER) & (timeline.kind != SYNC)
        if not timeline.has_kernels:
            # On a CPU the operators stay; only the time between them shrinks.
            between = here & (timeline.op < 0)
            kept = np.where(between, timeline.host_ns * change.keep, timeline.host_ns)
            return replace(timeline, host_ns=kept)
        made = timeline
        if change.fuse:
            kernels = self.at(timeline.kernel_place, change.places)
            norms = np.isin(take(timeline.op_name, timeline.kernel_op), self._norms)
            apart = (timeline.work == PRODUCT) | (timeline.work == OTHER)
            library = apart & np.isin(take(timeline.op_name, timeline.op), self._called)
            turned = self.turned(timeline, change.places)
            made = compiled.fused(timeline, kernels, turned, norms, library, self._launch_ns)
            left = np.maximum(made.host_ns, change.keep * timeline.host_ns)
        else:
            left = np.zeros(len(here))
        return replace(made, host_ns=np.where(here, left, timeline.host_ns))

    def _compiled_calls(self, timeline: Timeline, change: CompiledCalls) -> Timeline:
        here = self.at(timeline.place, change.places) & (timeline.kind != LOADER) & (timeline.kind != SYNC)
        added = compiled.call_ns(timeline, here, change, self._launch_ns)
        return replace(timeline, host_ns=timeline.host_ns + added)

    def _no_anomaly_detection(self, timeline: Timeline, change: NoAnomalyDetection) -> Timeline:
        here = self.at(timeline.place, change.places)
        checks = here & timeline.checks
        left = np.maximum(timeline.host_ns - np.where(here, timeline.traceback_ns, 0.0), 0.0)
        made = replace(
            timeline,
            host_ns=np.where(checks, np.where(timeline.kind == SYNC, 0.0, change.checked) * left, left),
            traceback_ns=np.where(here, 0.0, timeline.traceback_ns),
            kind=np.where(checks & (timeline.kind == SYNC), WORK, timeline.kind),
        )
        kernels = timeline.kernel_checks & self.at(timeline.kernel_place, change.places)
        if not change.checked:
            return without(made, kernels)
        return replace(made, kernel_ns=np.where(kernels, change.checked, 1.0) * made.kernel_ns)

    def _larger_batch(self, timeline: Timeline, change: LargerBatch) -> Timeline:
        grown: Floats = np.maximum(
            timeline.kernel_ns, (timeline.kernel_ns - FLOOR_NS) * change.factor + FLOOR_NS
        )
        host = timeline.host_ns.copy()
        ops = (timeline.op >= 0) if not timeline.has_kernels else np.zeros(len(host), bool)
        ops |= timeline.kind == LOADER
        host[ops] *= change.factor
        # The optimizer's kernels do not grow with the batch.
        return replace(
            timeline,
            host_ns=host,
            kernel_ns=np.where(timeline.kernel_work == FIXED, timeline.kernel_ns, grown),
        )

    def _scale(self, timeline: Timeline, change: Scale) -> Timeline:
        here = self.at(timeline.place, change.places)
        on_device = self.at(timeline.kernel_place, change.places)
        # Without kernels the device is the CPU, so operators scale as the device does.
        operators = (timeline.op >= 0) & (not timeline.has_kernels)
        factor = np.where(operators, change.device, change.host)
        return replace(
            timeline,
            host_ns=np.where(here, timeline.host_ns * factor, timeline.host_ns),
            kernel_ns=np.where(on_device, timeline.kernel_ns * change.device, timeline.kernel_ns),
        )


def _is_called(name: str) -> bool:
    """A library's operator, or what compiled code has already: these stay when code is compiled."""
    engine = name.startswith(("autograd::", "torch::autograd")) and "AccumulateGrad" not in name
    return ("::" in name and not engine) or name.startswith(("CompiledFunction", "Torch-Compiled Region"))


def _widest(timeline: Timeline, rows: Ints, count: int) -> Ints:
    """``count`` of ``rows``: those of the kernels with the longest median time. Rows of one kernel are
    chosen at even distances.

    The median is over kernels of the same line, name and launch shape, so that one slow execution (another
    process had the device) does not count.
    """
    if count >= len(rows):
        return np.arange(len(rows))
    own = timeline.kernel_ns[rows]
    columns = (timeline.kernel_place, timeline.kernel_name, timeline.kernel_shape)
    _, numbers = np.unique([column[rows] for column in columns], axis=1, return_inverse=True)
    kind: Ints = numbers.ravel()
    order = np.lexsort((own, kind))
    first = np.flatnonzero(np.concatenate([[True], np.diff(kind[order]) > 0]))
    size = np.diff(np.append(first, len(rows)))
    usual = own[order][first + size // 2]
    chosen: list[Ints] = []
    left = count
    for at in np.argsort(-usual, kind="stable").tolist():
        mine = np.flatnonzero(kind == at)
        taken = min(left, len(mine))
        chosen.append(mine[np.linspace(0, len(mine) - 1, taken).round().astype(np.int64)])
        left -= taken
        if not left:
            break
    return np.concatenate(chosen)


def _runs(names: Ints) -> int:
    """How often the lines of these kernels (or operators) ran: the rarest name counts once per run."""
    return int(np.unique(names, return_counts=True)[1].min()) if len(names) else 0


def _typical(timeline: Timeline, kind: int) -> float:
    chosen = timeline.host_ns[timeline.kind == kind]
    return float(np.median(chosen)) if len(chosen) else 0.0


def _after(here: Bools) -> Bools:
    """The marked rows and the eight rows after each."""
    found: Bools = here.copy()
    for distance in range(1, 9):
        found[distance:] |= here[:-distance]
    return found
