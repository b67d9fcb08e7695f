"""Changes made to a timeline: each function gives the timeline as it would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warpline.model import costs
from warpline.model.change import (
    Change,
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
OPTIMIZER_LAUNCHES = 4
#: What a launch costs the host from compiled code, of what one costs now, Python and autograd included.
COMPILED_LAUNCH = costs.value("compiled-launch")
#: A kernel shorter than this is all launch and tail: more data does not make it longer.
FLOOR_NS = 5_000.0


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

    def turned(self, line: Timeline, where: Where) -> Bools:
        """Kernels at ``where`` that turn a tensor's layout for the tensor cores, or back."""
        found: Bools = np.isin(line.kernel_name, self._turning) & self.at(line.kernel_place, where)
        return found

    def make(self, line: Timeline, change: Change) -> Timeline:
        """``line`` with ``change`` made; what has a file of its own (loading, layout, precision) is not."""
        match change:
            case OverlapCopies():
                return self._overlap_copies(line, change)
            case RemoveSyncs():
                return self._remove_syncs(line, change)
            case Fuse():
                return self._fuse(line, change)
            case FuseOptimizer():
                return self._fuse_optimizer(line, change)
            case RemoveLaunches():
                return self._remove_launches(line, change)
            case LargerBatch():
                return self._larger_batch(line, change)
            case Scale():
                return self._scale(line, change)
            case _:
                return line

    def _overlap_copies(self, line: Timeline, change: OverlapCopies) -> Timeline:
        here = line.copies & self.at(line.place, change.places)
        copied = np.repeat(here, np.diff(line.first))
        call = _typical(line, LAUNCH)
        return replace(
            line,
            host_ns=np.where(here, np.minimum(line.host_ns, call), line.host_ns),
            # A pageable copy waits for itself; that wait is a sync of its own at the same line.
            kind=np.where(
                self.at(line.place, change.places) & _after(here) & (line.kind == SYNC), WORK, line.kind
            ),
            kernel_ns=np.where(copied, line.kernel_ns / change.rate_factor, line.kernel_ns),
            blocking=line.blocking & ~copied,
        )

    def _remove_syncs(self, line: Timeline, change: RemoveSyncs) -> Timeline:
        here = self.at(line.place, change.places)
        syncs = here & ((line.kind == SYNC) | line.copies)
        if change.keep > 0:
            # Every n-th stays, the first of them last: reading is put off, not brought forward.
            every = max(1, round(1 / change.keep))
            syncs = syncs & ((np.cumsum(syncs) % every) != 0)
        gone = np.repeat(syncs, np.diff(line.first))
        kept = replace(
            line,
            host_ns=np.where(syncs, 0.0, line.host_ns),
            kind=np.where(syncs & (line.kind == SYNC), WORK, line.kind),
        )
        return without(kept, gone)

    def _fuse(self, line: Timeline, change: Fuse) -> Timeline:
        if change.keep is not None:
            return self._thinned(line, change, change.keep)
        products = line.kernel_work == PRODUCT
        here = self.at(line.kernel_place, change.places) & ~products
        stays = self._stays(line, here, change.kernels, per_run=True)
        each = None
        if change.bytes is not None and self._rates is not None and stays.any():
            each = change.bytes / self._rates.bytes_per_s * 1e9 / (int(stays.sum()) / line.steps)
        return self._merged(line, change.places, stays, each, change.kernels, products)

    def _thinned(self, line: Timeline, change: Fuse, keep: float) -> Timeline:
        """Each place keeps what is not fused, and ``keep`` of what is."""
        on_host = keep if change.keep_host is None or not len(line.kernel_ns) else change.keep_host
        device, host = self._left(change, keep), self._left(change, on_host)
        return replace(
            line,
            host_ns=np.where(line.kind == LOADER, 1.0, host[line.place]) * line.host_ns,
            kernel_ns=line.kernel_ns * device[line.kernel_place],
        )

    def _left(self, change: Fuse, keep: float) -> Floats:
        """By line, the share of its time that is left."""
        factor = np.ones(len(self._lines))
        for place, share in zip(change.places, change.shares or (1.0,) * len(change.places), strict=False):
            factor[self._number.get(place, 0)] = 1 - share * (1 - max(keep, 0.0))
        factor[0] = 1.0
        return factor

    def _fuse_optimizer(self, line: Timeline, change: FuseOptimizer) -> Timeline:
        here = self.at(line.kernel_place, change.places)
        stays = self._stays(line, here, OPTIMIZER_LAUNCHES)
        each = None
        if stays.any():
            # The same bytes move: without their number, what is more than the launch of each kernel.
            moved = float(np.maximum(line.kernel_ns[here] - FLOOR_NS / 2, 0).sum()) / line.steps
            if change.bytes is not None and self._rates is not None:
                moved = change.bytes / self._rates.bytes_per_s * 1e9
            each = max(FLOOR_NS, moved / (int(stays.sum()) / line.steps))
        nothing = np.zeros(len(here), bool)
        return self._merged(line, change.places, stays, each, OPTIMIZER_LAUNCHES, nothing)

    def _stays(self, line: Timeline, here: Bools, count: int, per_run: bool = False) -> Bools:
        """The ``count`` widest kernels of each step and phase, of those that are ``here``.

        ``per_run``: so many each time the lines run.
        """
        stays = np.zeros(len(here), bool)
        group = line.kernel_step * 2 + line.kernel_backward
        for number in np.unique(group[here]).tolist():
            rows = np.flatnonzero(here & (group == number))
            runs = _runs(line.kernel_name[rows]) if per_run else 1
            stays[rows[np.argsort(-line.kernel_ns[rows], kind="stable")[: count * runs]]] = True
        return stays

    def _merged(
        self, line: Timeline, where: Where, stays: Bools, each_ns: float | None, count: int, apart: Bools
    ) -> Timeline:
        """Kernels at ``where`` gone but those that stay, ``each_ns`` long from now on, and those that are
        ``apart``, as they are; the host's work there shrinks likewise.
        """
        here = self.at(line.kernel_place, where)
        host_here = self.at(line.place, where) & (line.kind != LOADER)
        if len(line.kernel_ns):
            gone = here & ~stays & ~apart
            share = 1 - gone.sum() / max(1, here.sum())
            kernel = np.where(stays, each_ns, line.kernel_ns) if each_ns is not None else line.kernel_ns
            shrunk = replace(
                line, host_ns=np.where(host_here, line.host_ns * share, line.host_ns), kernel_ns=kernel
            )
            return without(shrunk, gone)
        # The device is the CPU: an operator's own time is its kernel's. One operator a step and phase
        # stays, the widest, as it reads and writes what a fused one must.
        ops = host_here & (line.op >= 0) & (line.work != PRODUCT)
        best = np.zeros(len(ops), bool)
        group = line.step * 2 + line.backward
        for number in np.unique(group[ops]).tolist():
            rows = np.flatnonzero(ops & (group == number))
            called, own = np.unique(line.op[rows], return_inverse=True)
            wanted = count * _runs(line.op_name[line.op[rows]][np.unique(own, return_index=True)[1]])
            widest = np.argsort(-np.bincount(own, line.host_ns[rows]), kind="stable")[:wanted]
            best[rows] = np.isin(line.op[rows], called[widest])
        calls = max(1, len(np.unique(line.op[ops])))
        share = len(np.unique(line.op[best])) / calls
        between = host_here & (line.op < 0)
        scaled = np.where(between, line.host_ns * share, line.host_ns)
        return replace(line, host_ns=np.where(ops & ~best, 0.0, scaled))

    def _remove_launches(self, line: Timeline, change: RemoveLaunches) -> Timeline:
        here = self.at(line.place, change.places) & (line.kind != LOADER) & (line.kind != SYNC)
        if not len(line.kernel_ns):
            # On a CPU the operators stay; what lies between them goes.
            between = here & (line.op < 0)
            return replace(line, host_ns=np.where(between, line.host_ns * change.keep, line.host_ns))
        if not change.fuse:
            return replace(line, host_ns=np.where(here, line.host_ns * change.keep, line.host_ns))
        compiled = self.at(line.kernel_place, change.places)
        mergeable = (line.kernel_work == ELEMENTWISE) & compiled
        # Inductor lays convolutions out channels last (its ``layout_optimization``).
        turned = self.turned(line, change.places)
        # Runs of memory-bound kernels become one, as long as the widest of them.
        begins = mergeable & ~np.concatenate([[False], mergeable[:-1]])
        run = np.where(mergeable, np.cumsum(begins), 0)
        widest = np.zeros(int(run.max(initial=0)) + 1)
        np.maximum.at(widest, run, line.kernel_ns)
        fused = np.where(begins, widest[run], line.kernel_ns)
        gone = (mergeable & ~begins) | turned
        # What is compiled still launches its kernels one by one: the host's work goes as launches do.
        stays = float((compiled & ~gone).sum()) / compiled.sum() if compiled.any() else 0.0
        left = max(change.keep, min(1.0, stays * COMPILED_LAUNCH))
        host = np.where(here, line.host_ns * left, line.host_ns)
        return without(replace(line, host_ns=host, kernel_ns=fused), gone)

    def _larger_batch(self, line: Timeline, change: LargerBatch) -> Timeline:
        grown: Floats = np.maximum(line.kernel_ns, (line.kernel_ns - FLOOR_NS) * change.factor + FLOOR_NS)
        host = line.host_ns.copy()
        ops = (line.op >= 0) if not len(line.kernel_ns) else np.zeros(len(host), bool)
        ops |= line.kind == LOADER
        host[ops] *= change.factor
        # What does not grow with the batch: updating the parameters.
        return replace(
            line, host_ns=host, kernel_ns=np.where(line.kernel_work == FIXED, line.kernel_ns, grown)
        )

    def _scale(self, line: Timeline, change: Scale) -> Timeline:
        here, on_device = self.at(line.place, change.places), self.at(line.kernel_place, change.places)
        # Without kernels the device is the CPU, so operators scale as the device does.
        operators = (line.op >= 0) & (not len(line.kernel_ns))
        factor = np.where(operators, change.device, change.host)
        return replace(
            line,
            host_ns=np.where(here, line.host_ns * factor, line.host_ns),
            kernel_ns=np.where(on_device, line.kernel_ns * change.device, line.kernel_ns),
        )


def without(line: Timeline, gone: Bools) -> Timeline:
    """``line`` with some kernels left out."""
    if not gone.any():
        return line
    removed = np.concatenate([[0], np.cumsum(gone)])
    first = line.first - removed[line.first]
    stays = ~gone
    empty = (np.diff(first) == 0) & (line.kind == LAUNCH)
    return replace(
        line,
        first=first,
        kind=np.where(empty, WORK, line.kind),
        **{name: getattr(line, name)[stays] for name in KERNEL_COLUMNS},
    )


def beginning(line: Timeline, count: int) -> Timeline:
    """The first ``count`` segments, as a window of one step."""
    kept = without(line, np.arange(len(line.kernel_ns)) >= line.first[count])
    columns = {name: getattr(kept, name)[:count] for name in SEGMENT_COLUMNS}
    return replace(kept, first=kept.first[: count + 1], steps=1, **columns)


SEGMENT_COLUMNS = ("start_ns", "host_ns", "kind", "place", "op", "work", "step", "backward", "copies")
KERNEL_COLUMNS = (
    *("kernel_ns", "kernel_start", "stream", "kernel_place", "kernel_work", "kernel_op", "kernel_backward"),
    *("kernel_step", "kernel_bytes", "kernel_name", "blocking"),
)


def _runs(names: Ints) -> int:
    """How often lines ran whose kernels (or operators) have these names: the rarest came once a time."""
    return int(np.unique(names, return_counts=True)[1].min()) if len(names) else 0


def _typical(line: Timeline, kind: int) -> float:
    chosen = line.host_ns[line.kind == kind]
    return float(np.median(chosen)) if len(chosen) else 0.0


def _after(here: Bools) -> Bools:
    """Rows from a marked one to a few calls behind it."""
    found: Bools = here.copy()
    for distance in range(1, 9):
        found[distance:] |= here[:-distance]
    return found
