"""Times how long the steps' thread waits for each loader, from the first epoch to the end of the timing
window: in ``next``, and in ``iter``, which starts workers."""

from __future__ import annotations

import contextlib
import sys
from statistics import median
from threading import get_ident
from time import perf_counter_ns, process_time_ns, thread_time_ns
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..births.batch import Batch
from ..patches import Patches

if TYPE_CHECKING:
    from ..births.sites import Entry, Sites
    from ..patches import Function
    from ..steps.signals import Signals


#: The quantile of the batches that tells how much of a batch is work: others may have waited for a processor.
#: Chosen, not fitted.
BUSY = 0.9


class Spent:
    """Time spent on one loader's batches, in ns."""

    def __init__(self, entry: Entry, batch: Batch) -> None:
        self.entry = entry
        self.batch = batch
        self.batches: list[int] = []  # of each ``next`` that returned a batch
        self.worked: list[int] = []  # of that, the thread's time on a processor
        self.beside: list[int] = []  # and that of the process's other threads meanwhile
        #: For each epoch: ``iter``, the ``next`` of its first batch, and the one that found no more.
        self.starts: list[int] = []
        #: From a batch to the next one that was asked for, in the window: after first batches, after others.
        self.after_first: list[int] = []
        self.after_others: list[int] = []
        self.gave_at: int | None = None  # when this epoch's last batch was there
        self.first = False  # the epoch's first batch is still to come
        self.window_ns = self.window_starts = 0
        self.given = 0  # batches of this epoch so far
        self.epoch: int | None = None  # batches of the last complete epoch

    def began(self, took_ns: int) -> None:
        """An epoch began; making its iterator took ``took_ns``."""
        self.starts.append(took_ns)
        self.first = True
        self.given = 0
        self.gave_at = None
        self.window_ns += took_ns
        self.window_starts += 1

    def begin_window(self) -> None:
        """The timing window begins."""
        self.window_ns = self.window_starts = 0
        self.after_first.clear()
        self.after_others.clear()
        self.gave_at = None

    def done(self, at_ns: int) -> None:
        """The steps are done with the last batch: at ``at_ns`` they ask for another one."""
        if self.gave_at is not None:
            (self.after_first if self.given == 1 else self.after_others).append(at_ns - self.gave_at)

    def asked(self, took_ns: int, gave: bool, worked_ns: int = 0, process_ns: int = 0) -> None:
        """A batch was asked for; ``gave`` is False at the end of the epoch. ``worked_ns``, ``process_ns``:
        the thread's time on a processor, and that of all threads of the process."""
        self.window_ns += took_ns
        if self.starts and (self.first or not gave):
            self.starts[-1] += took_ns
        self.first = False
        if gave:
            self.batches.append(took_ns)
            self.worked.append(worked_ns)
            self.beside.append(max(0, process_ns - worked_ns))
            self.given += 1
        else:
            self.epoch = self.given

    def busy(self) -> float:
        """Share of a batch's time in which the thread had a processor, 0 to 1."""
        both = list(zip(self.worked, self.batches))
        shares = sorted(min(1.0, worked / max(1, took)) for worked, took in both[1:] or both)
        return shares[int(BUSY * len(shares))]

    def threads_beside(self) -> float:
        """How many threads worked beside this one, in the median batch."""
        both = list(zip(self.beside, self.worked))
        return median(beside / max(1, worked) for beside, worked in both[1:] or both)

    def start_ns(self, first: bool) -> float | None:
        """The usual cost of an epoch's start, in ns. The first epoch has more to do, so it counts only if
        there is no other; with ``first`` False not even then (None)."""
        starts = self.starts[1:] or (self.starts if first else [])
        return median(starts) if starts else None


class Batches:
    """Installed over ``Signals`` and ``Sites``, and removed before them."""

    def __init__(self, sites: Sites, signals: Signals) -> None:
        self.sites = sites
        self.signals = signals
        self.patches = Patches()
        self.loaders: dict[int, Spent] = {}  # by id of the entry
        self.iterators: WeakKeyDictionary[Any, Spent] = WeakKeyDictionary()
        self.over = False

    def install(self) -> None:
        """Time ``iter`` and ``next`` of every loader."""
        from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

        self.patches.replace(DataLoader, "__iter__", self._iter)
        self.patches.replace(_BaseDataLoaderIter, "__next__", self._next)

    def remove(self) -> None:
        """Put torch's own back."""
        self.patches.restore()

    def start(self) -> None:
        """The timing window begins."""
        self.over = False
        for spent in self.loaders.values():
            spent.begin_window()

    def stop(self, steps: int) -> None:
        """The timing window has ended after ``steps`` steps; later batches are not counted."""
        self.over = True
        for spent in self.loaders.values():
            facts = spent.entry[3]
            if spent.window_ns and steps:
                facts["wait_ms"] = spent.window_ns / steps / 1e6
            facts["starts_timed"] = spent.window_starts

    def tell(self, first: bool) -> None:
        """Add the times to the facts of the loaders. ``first`` False: we slowed the first batches of the
        loaders that were made first, so the start of their first epoch is not used."""
        for spent in self.loaders.values():
            facts = spent.entry[3]
            start_ns = spent.start_ns(first or "made" in facts)
            if spent.batches:
                later = sorted(spent.batches[1:] or spent.batches)  # the first batch starts the workers
                facts["in_main_ms"] = later[len(later) // 2] / 1e6
                facts["in_main_busy"] = spent.busy()
                facts["in_main_beside"] = spent.threads_beside()
            facts.update(spent.batch.facts)
            if start_ns is not None:
                facts["start_ms"] = start_ns / 1e6
            if spent.after_first and spent.after_others:
                facts["after_first_ms"] = median(spent.after_first) / 1e6
                facts["after_others_ms"] = median(spent.after_others) / 1e6
            if spent.epoch:
                facts["batches_seen"] = spent.epoch

    def _counts(self) -> bool:
        return not self.over and self.signals.thread in (None, get_ident())

    def _iter(self, original: Function) -> Function:
        def __iter__(loader: Any) -> Any:
            begin = perf_counter_ns()
            iterator = original(loader)
            took = perf_counter_ns() - begin
            entry = self.sites.by_id.get(id(loader))
            if entry is not None and self._counts():
                spent = self.loaders.setdefault(id(entry), Spent(entry, Batch(self.sites.user_files)))
                spent.began(took)
                with contextlib.suppress(TypeError):  # an iterator of the user's that takes no weak reference
                    self.iterators[iterator] = spent
            return iterator

        return __iter__

    def _next(self, original: Function) -> Function:
        iterators = self.iterators

        def __next__(iterator: Any) -> Any:
            spent = iterators.get(iterator)
            if spent is None or not self._counts():
                return original(iterator)
            if spent.first:  # a framework may have made the iterator elsewhere
                self.sites.used(spent.entry, sys._getframe(1))
            begin, worked, process = perf_counter_ns(), thread_time_ns(), process_time_ns()
            spent.done(begin)
            try:
                batch = original(iterator)
            except StopIteration:
                spent.asked(perf_counter_ns() - begin, False)
                raise
            spent.gave_at = perf_counter_ns()
            took, process = spent.gave_at - begin, process_time_ns() - process
            spent.asked(took, True, thread_time_ns() - worked, process)
            spent.batch.look(batch)
            return batch

        return __next__
