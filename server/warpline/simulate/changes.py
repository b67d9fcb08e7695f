"""Changes of a timeline: each function returns the changed timeline."""

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
    OverlapCopies,
    RemoveLaunches,
    RemoveSyncs,
    Scale,
)
from warpline.model.change import Places as Where
from warpline.model.kernel_name import turns_layout
from warpline.simulate.device import Rates
from warpline.simulate.timeline import LAUNCH, LOADER, SYNC, WORK, Places, Timeline
from warpline.simulate.work import ELEMENTWISE, FIXED, PRODUCT
from warpline.trace.columns import Bools, Floats, Ints

#: A multi-tensor optimizer works through its list in a handful of launches.
OPTIMIZER_LAUNCHES = round(costs.value("optimizer-launches"))
#: What a launch costs the host from compiled code, of what one costs now, Python and autograd included.
COMPILED_LAUNCH = costs.value("compiled-launch")
#: What a call of compiled code costs the host beside its launches.
COMPILED_CALL_NS = costs.value("compiled-call-ns")
#: A kernel shorter than this is all launch and tail: more data does not make it longer.
FLOOR_NS = costs.value("short-kernel-ns")


class Changed:
    """Makes changes to timelines of one trace."""

    def __init__(self, places: Places, rates: Rates | None, names: Sequence[str] = ()) -> None:
        """``names``: what ``Timeline.kernel_name`` numbers."""
        self._number = {place: at for at, place in enumerate(places.lines)}
        self._turning = [at for at, name in enumerate(names) if turns_layout(name)]
        self._rates = rates
        self._lines = places.lines

    def at(self, column: Ints, where: Where) -> Bools:
        """Which rows of a ``place`` column lie at ``where``; everywhere when it is empty."""
        if not where:
            return np.ones(len(column), bool)
        numbers = [self._number[place] for place in where if self._number.get(place)]
        found: Bools = np.isin(column, numbers)
        return found

    def turned(self, timeline: Timeline, where: Where) -> Bools:
        """Kernels at ``where`` that turn a tensor's layout for the tensor cores, or back."""
        found: Bools = np.isin(timeline.kernel_name, self._turning) & self.at(timeline.kernel_place, where)
        return found

    def make(self, timeline: Timeline, change: Change) -> Timeline:
        """The timeline with ``change``; what has a file of its own (loading, layout, precision) is not."""
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
            case LargerBatch():
                return self._larger_batch(timeline, change)
            case Scale():
                return self._scale(timeline, change)
            case _:
                return timeline

    def _overlap_copies(self, timeline: Timeline, change: OverlapCopies) -> Timeline:
        here = timeline.copies & self.at(timeline.place, change.places)
        copied = np.repeat(here, np.diff(timeline.first))
        call = _typical(timeline, LAUNCH)
        return replace(
            timeline,
            host_ns=np.where(here, np.minimum(timeline.host_ns, call), timeline.host_ns),
            # A pageable copy waits for itself; that wait is a sync of its own at the same line.
            kind=np.where(
                self.at(timeline.place, change.places) & _after(here) & (timeline.kind == SYNC),
                WORK,
                timeline.kind,
            ),
            kernel_ns=np.where(copied, timeline.kernel_ns / change.rate_factor, timeline.kernel_ns),
            blocking=timeline.blocking & ~copied,
        )

    def _remove_syncs(self, timeline: Timeline, change: RemoveSyncs) -> Timeline:
        here = self.at(timeline.place, change.places)
        syncs = here & ((timeline.kind == SYNC) | timeline.copies)
        if change.keep > 0:
            # Every n-th stays, the first of them last: reading is put off, not brought forward.
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
        products = timeline.kernel_work == PRODUCT
        here = self.at(timeline.kernel_place, change.places) & ~products
        stays = self._stays(timeline, here, change.kernels, per_run=True)
        each = None
        if change.bytes is not None and self._rates is not None and stays.any():
            each = change.bytes / self._rates.bytes_per_s * 1e9 / (int(stays.sum()) / timeline.steps)
        return self._merged(timeline, change.places, stays, each, change.kernels, products)

    def _thinned(self, timeline: Timeline, change: Fuse, keep: float) -> Timeline:
        """Each place keeps what is not fused, and ``keep`` of what is."""
        on_host = keep if change.keep_host is None or not timeline.has_kernels else change.keep_host
        device, host = self._left(change, keep), self._left(change, on_host)
        return replace(
            timeline,
            host_ns=np.where(timeline.kind == LOADER, 1.0, host[timeline.place]) * timeline.host_ns,
            kernel_ns=timeline.kernel_ns * device[timeline.kernel_place],
        )

    def _left(self, change: Fuse, keep: float) -> Floats:
        """The share of each line's time that is left."""
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
            # The same bytes move: without their number, what is more than the launch of each kernel.
            moved = float(np.maximum(timeline.kernel_ns[here] - FLOOR_NS / 2, 0).sum()) / timeline.steps
            if change.bytes is not None and self._rates is not None:
                moved = change.bytes / self._rates.bytes_per_s * 1e9
            each = max(FLOOR_NS, moved / (int(stays.sum()) / timeline.steps))
        nothing = np.zeros(len(here), bool)
        return self._merged(timeline, change.places, stays, each, OPTIMIZER_LAUNCHES, nothing)

    def _stays(self, timeline: Timeline, here: Bools, count: int, per_run: bool = False) -> Bools:
        """The ``count`` widest kernels of each step and phase, of those that are ``here``.

        ``per_run``: so many each time the lines run.
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
        """Kernels at ``where`` gone but those that stay, ``each_ns`` long from now on, and those that are
        ``apart``, as they are; the host's work there shrinks likewise.
        """
        here = self.at(timeline.kernel_place, where)
        host_here = self.at(timeline.place, where) & (timeline.kind != LOADER)
        if timeline.has_kernels:
            gone = here & ~stays & ~apart
            share = 1 - gone.sum() / max(1, here.sum())
            host = np.where(host_here, timeline.host_ns * share, timeline.host_ns)
            kernel = timeline.kernel_ns if each_ns is None else np.where(stays, each_ns, timeline.kernel_ns)
            return without(replace(timeline, host_ns=host, kernel_ns=kernel), gone)
        # The device is the CPU: an operator's own time is its kernel's. One operator a step and phase
        # stays, the widest, as it reads and writes what a fused one must.
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
        """Fewer launches at some lines: the host time shrinks, and with ``fuse`` kernels merge."""
        here = self.at(timeline.place, change.places) & (timeline.kind != LOADER) & (timeline.kind != SYNC)
        if not timeline.has_kernels:
            # On a CPU the operators stay; what lies between them goes.
            between = here & (timeline.op < 0)
            kept = np.where(between, timeline.host_ns * change.keep, timeline.host_ns)
            return replace(timeline, host_ns=kept)
        if not change.fuse:
            return replace(timeline, host_ns=np.where(here, timeline.host_ns * change.keep, timeline.host_ns))
        compiled = self.at(timeline.kernel_place, change.places)
        mergeable = (timeline.kernel_work == ELEMENTWISE) & compiled
        # Inductor lays convolutions out channels last (its ``layout_optimization``).
        turned = self.turned(timeline, change.places)
        # Runs of memory-bound kernels become one, as long as the widest of them.
        begins = mergeable & ~np.concatenate([[False], mergeable[:-1]])
        run = np.where(mergeable, np.cumsum(begins), 0)
        widest = np.zeros(int(run.max(initial=0)) + 1)
        np.maximum.at(widest, run, timeline.kernel_ns)
        fused = np.where(begins, widest[run], timeline.kernel_ns)
        gone = (mergeable & ~begins) | turned
        # What is compiled still launches its kernels one by one: the host's work goes as launches do.
        stays = float((compiled & ~gone).sum()) / compiled.sum() if compiled.any() else 0.0
        left = max(change.keep, min(1.0, stays * COMPILED_LAUNCH))
        host = np.where(here, timeline.host_ns * left, timeline.host_ns)
        return without(replace(timeline, host_ns=host, kernel_ns=fused), gone)

    def _compiled_calls(self, timeline: Timeline, change: CompiledCalls) -> Timeline:
        here = self.at(timeline.place, change.places) & (timeline.kind != LOADER) & (timeline.kind != SYNC)
        added = np.zeros(len(here))
        for phase in (here & ~timeline.backward, here & timeline.backward):
            whole = float(timeline.host_ns[phase].sum())
            if whole > 0:
                share = timeline.host_ns / whole
                added += np.where(phase, share * change.calls * COMPILED_CALL_NS * timeline.steps, 0.0)
        return replace(timeline, host_ns=timeline.host_ns + added)

    def _larger_batch(self, timeline: Timeline, change: LargerBatch) -> Timeline:
        grown: Floats = np.maximum(
            timeline.kernel_ns, (timeline.kernel_ns - FLOOR_NS) * change.factor + FLOOR_NS
        )
        host = timeline.host_ns.copy()
        ops = (timeline.op >= 0) if not timeline.has_kernels else np.zeros(len(host), bool)
        ops |= timeline.kind == LOADER
        host[ops] *= change.factor
        # What does not grow with the batch: updating the parameters.
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


SEGMENT_COLUMNS = ("start_ns", "host_ns", "kind", "place", "op", "work", "step", "backward", "copies")
KERNEL_COLUMNS = (
    *("kernel_ns", "kernel_start", "stream", "kernel_place", "kernel_work", "kernel_op", "kernel_backward"),
    *("kernel_step", "kernel_bytes", "kernel_name", "kernel_shape", "blocking"),
)


def _widest(timeline: Timeline, rows: Ints, count: int) -> Ints:
    """``count`` of ``rows``, those whose kernels are usually the widest; of one kernel's, evenly spaced ones.

    A kernel that is slow once (another process had the device meanwhile) is not wide: it counts as the
    middle one of its line, name and size.
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
    """Rows from a marked one to a few calls behind it."""
    found: Bools = here.copy()
    for distance in range(1, 9):
        found[distance:] |= here[:-distance]
    return found
