"""The lines that load batches: a trace function in the workers, for two batches each.

While the main process is captured, each worker records the lines of its next batches; else it only
notes how long its batches take. An event costs what makes recorded batches longer than others, divided by
their events. Each line is freed of its own events' cost, so that a line that sleeps keeps its time.
Workers that are spawned, not forked, are not reached: they import torch again.

Where steps are few, the capture comes last, and by then workers have made all batches that there are. There
each worker records its first batch as well, without the first sample, which may do what is done only once.
All of them being late alike, the steps do not wait for that longer than for the first batch.

Recording slows plain Python many times over. After ``ENOUGH_NS`` no more samples of a batch are recorded, and
those that were stand for all of them.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
from collections import deque
from time import monotonic, perf_counter_ns, sleep
from types import CodeType, FrameType
from typing import Any, Callable, Iterator, Tuple

from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles
from ..patches import Patches
from .sampled import Sampled, line_ns, times

FOLDER = "workers"
#: Batches that a worker records line by line, as design.md asks, and unrecorded ones it remembers.
RECORDED, REMEMBERED = 2, 8
#: Of those, the ones that it records before steps are timed, where steps are few.
EARLY = 1
#: Unrecorded batches after a recorded one at which it is written how long they take.
WRITTEN_AFTER = (1, 4)
#: Time after which no further sample of a batch is recorded, and after which the batch is given up.
ENOUGH_NS, GIVEN_UP_NS = 1_000_000_000, 5_000_000_000
#: Bytes of the shared flag before those of the workers, and how many of those there are.
AT_WORK, MOST_WORKERS = 3, 64
#: Seconds that a recorded batch may take after the capture. Captured steps
#: may be over in less time than a worker needs for one batch.
PATIENCE_S = 5.0
#: Events by which the cost of one is measured.
EVENTS = 2000
#: How many times as much an event may cost as in the plain loop, whose caches are warm; more than that where
#: events at that loop's cost are already such a part of a recorded batch, in lines of quick plain Python.
NEAR, DENSE = 3.0, 0.25

#: Functions until Python 3.12, with an event for each round; their time goes to the line that they are on.
WITHIN_A_LINE = ("<listcomp>", "<setcomp>", "<dictcomp>")

Location = Tuple[str, int, str]  # file, line, function


class WorkerLines:
    """In the main process: lets the workers forked from it record while ``start`` has been called."""

    def __init__(self, user_files: UserFiles, names: QualifiedNames, folder: str) -> None:
        self.user_files = user_files
        self.names = names
        self.folder = os.path.join(folder, FOLDER)
        self.patches = Patches()
        self.early = False  # first batches were recorded
        #: Shared with every process that is forked from here on: batches that each worker may record; one has
        #: begun a batch so; workers are sampled. Then for each worker whether it is recording a batch now.
        self.flag = mmap.mmap(-1, AT_WORK + MOST_WORKERS)

    def install(self) -> None:
        from torch.utils.data._utils import worker

        self.patches.replace(worker, "_worker_loop", self._followed)

    def start(self, most: int = RECORDED) -> None:
        """From now on, until each worker has recorded so many batches, or ``pause``."""
        self.early |= most == EARLY
        os.makedirs(self.folder, exist_ok=True)
        self.flag[0] = most

    def pause(self) -> None:
        self.flag[0] = 0

    def sample(self, wanted: bool) -> None:
        self.flag[2] = wanted

    def remove(self) -> None:
        self.flag[0] = self.flag[2] = 0
        self.patches.restore()

    def found(self) -> list[dict[str, Any]]:
        """What the workers have written so far; the folder goes."""
        self._wait_for_them()
        told = []
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                path = os.path.join(self.folder, name)
                with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                    told.append(json.load(file))
                os.unlink(path)
            os.rmdir(self.folder)
        return told

    def _wait_for_them(self) -> None:
        """Until the workers that record a batch have written it, while there are workers."""
        processes = sys.modules.get("multiprocessing")
        deadline = monotonic() + PATIENCE_S
        while self.flag[1] and processes is not None and processes.active_children():
            written = any(name.endswith(".json") for name in os.listdir(self.folder))
            if monotonic() > deadline or (written and not any(self.flag[AT_WORK:])):
                return
            sleep(0.01)

    def _followed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def worker_loop(*arguments: Any, **named: Any) -> Any:
            with contextlib.suppress(Exception):  # another torch than this was written for: no lines
                Worker(self).install()
            return original(*arguments, **named)

        return worker_loop


class Worker:
    """In a worker process."""

    def __init__(self, main: WorkerLines) -> None:
        self.main = main
        self.plain: deque[int] = deque(maxlen=REMEMBERED)
        self.recorded = self.recorded_ns = 0
        self.events = 0.0
        self.spent: dict[Location, list[float]] = {}  # ns, events, calls
        self.sampled = Sampled()
        self.codes: set[CodeType] = set()
        self.event_ns: float | None = None  # once it has been measured

    def install(self) -> None:
        from torch.utils.data._utils import fetch

        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            Patches().replace(kind, "fetch", self._timed)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.data import get_worker_info

        def fetch(fetcher: Any, index: Any) -> Any:
            with contextlib.suppress(Exception):  # it costs the samples, not the batch
                self.sampled.batch(bool(self.main.flag[2]))
            if self.recorded >= self.main.flag[0] or sys.gettrace() is not None:
                began = perf_counter_ns()
                batch = original(fetcher, index)
                self.plain.append(perf_counter_ns() - began)
                if self.recorded and len(self.plain) in WRITTEN_AFTER:
                    with contextlib.suppress(Exception):
                        self._write()
                return batch
            first = not self.recorded and not self.plain
            lines = Lines(self.main.user_files, _length(index), without_first=first)
            self.main.flag[1] = 1
            place = AT_WORK + (getattr(get_worker_info(), "id", 0) % MOST_WORKERS)
            self.main.flag[place] = 1
            try:
                with lines, lines.knowing_collate(fetcher):
                    batch = original(fetcher, index)
                with contextlib.suppress(Exception):  # a full disk costs these lines, not the batch
                    self._keep(lines)
            finally:
                self.main.flag[place] = 0
            return batch

        return fetch

    def _keep(self, lines: Lines) -> None:
        if lines.failed:  # a second one would be as long
            self.recorded = RECORDED
            return
        self.recorded += 1
        self.recorded_ns += lines.total_ns
        self.events += lines.events
        for (code, line), figures in lines.spent.items():
            self.codes.add(code)
            path = str(self.main.user_files[code.co_filename])
            spent = self.spent.setdefault((path, line, self.main.names.of(code, path)), [0.0, 0.0, 0.0])
            for at, figure in enumerate(figures):
                spent[at] += figure
        self._write()

    def _write(self) -> None:
        path = os.path.join(self.main.folder, "%d.json" % os.getpid())
        if self.event_ns is None:
            self.event_ns = event_ns()
        told = {
            "recorded": self.recorded,
            "recorded_ns": self.recorded_ns,
            "events": self.events,
            "event_ns": self.event_ns,
            "plain_ns": list(self.plain),
            "lines": [[*place, *spent] for place, spent in self.spent.items()],
            "sampled": self.sampled.told(self.main.user_files, self.codes),
        }
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(path + ".part", path)


def _length(index: Any) -> int:
    """Samples of a batch, by what the loader asks for."""
    return len(index) if isinstance(index, (list, tuple)) else 1


class Lines:
    """A context: the wall time of each line of the user's in this thread, events of this trace counted.

    ``samples``: how many are made inside, 0 if that is not known. Then only so many of them are recorded as
    take ``ENOUGH_NS``; ``without_first``: the first one is not.
    """

    def __init__(self, user_files: UserFiles, samples: int = 0, without_first: bool = False) -> None:
        self.user_files = user_files
        self.samples = samples
        self.skipping = without_first and samples > 1
        #: (code, line) -> [ns, events charged to it, times begun]
        self.spent: dict[tuple[Any, int], list[float]] = {}
        self.stack: list[list[float]] = []
        self.charged: list[float] | None = None
        self.events = 0.0
        self.top: CodeType | None = None  # what torch calls for a sample
        self.begun = 0  # samples with recorded lines
        self.skipped = self.collating = self.paused = self.failed = False
        self.total_ns = 0  # of the whole batch; of a part not recorded, what the rest stands for

    def __enter__(self) -> Lines:
        self.began = self.last = perf_counter_ns()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        self._end_part(perf_counter_ns())

    @contextlib.contextmanager
    def knowing_collate(self, fetcher: Any) -> Iterator[None]:
        """All samples are there once torch's ``fetcher`` calls its collate function."""
        original = fetcher.collate_fn

        def collate(samples: Any) -> Any:
            self._end_part(perf_counter_ns())
            self.collating, self.skipping = True, False
            self.began = self.last = perf_counter_ns()
            if self.paused and not self.failed:
                self.paused = False
                sys.settrace(self._call)
            return original(samples)

        fetcher.collate_fn = collate
        try:
            yield
        finally:
            fetcher.collate_fn = original

    def _end_part(self, now: int) -> None:
        """What was recorded of the samples stands for all of them."""
        times = 1.0
        if self.samples and self.begun and not self.collating:
            recorded = self.begun if self.paused else self.samples - self.skipped
            times = self.samples / max(1, recorded)
        self.total_ns += round(times * ((self.last if self.paused else now) - self.began))
        if times == 1.0:
            return
        self.events *= times
        for spent in self.spent.values():
            spent[:] = [figure * times for figure in spent]

    def _charge(self) -> None:
        now = perf_counter_ns()
        self.events += 1
        if self.charged is not None:
            self.charged[0] += now - self.last
            self.charged[1] += 1
        self.last = now
        if now - self.began > GIVEN_UP_NS:
            self.failed = True
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if self.user_files[code.co_filename] is None or code.co_name in WITHIN_A_LINE:
            return None
        if self.skipping:
            if self.top is not code:
                self.top = self.top or code
                return None
            self.skipping, self.skipped = False, True
            self.began = self.last = perf_counter_ns()
        self._charge()
        if not self.stack and not self.collating and self._sample_begins(code):
            return None
        self.stack.append(self.charged)  # type: ignore[arg-type]  # None: outside the user's files
        self.charged = self._row(frame)
        return self._line

    def _sample_begins(self, code: CodeType) -> bool:
        """Whether it is not recorded, since there are enough."""
        self.top = self.top or code
        if code is not self.top:
            return False
        if 0 < self.begun < self.samples and self.last - self.began > ENOUGH_NS:
            self.paused = True
            sys.settrace(None)
            return True
        self.begun += 1
        return False

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._charge()
        if event == "line":
            self.charged = self._row(frame)
            self.charged[2] += 1
        elif event == "return":
            self.charged = self.stack.pop() if self.stack else None
        return self._line

    def _row(self, frame: FrameType) -> list[float]:
        return self.spent.setdefault((frame.f_code, frame.f_lineno), [0.0, 0, 0])


def event_ns() -> float:
    """What one event costs this process now: a loop of ``EVENTS`` lines, traced and not."""
    names: dict[str, Any] = {}
    exec(
        compile("def loop(n):\n for i in range(n):\n  x = i\n", "<warpline: cost of an event>", "exec"), names
    )
    loop = names["loop"]
    began = perf_counter_ns()
    loop(EVENTS // 2)
    plain = perf_counter_ns() - began
    lines = Lines(Everything())  # type: ignore[arg-type]
    with lines:
        loop(EVENTS // 2)
    return max(0.0, (lines.total_ns - plain) / max(1, lines.events))


class Everything(dict):  # type: ignore[type-arg]
    """In the place of UserFiles: every file is looked at."""

    def __missing__(self, filename: str) -> str:
        return filename


def merged(told: list[dict[str, Any]]) -> dict[str, Any] | None:
    """``Workers`` of what the workers wrote, None where none did."""
    batches = sum(one["recorded"] for one in told)
    if not batches:
        return None
    total = 0.0
    lines: dict[Location, list[float]] = {}
    for one in told:
        cost = _event_cost(one)
        total += one["recorded_ns"] - cost * one["events"]
        for file, line, function, ns, events, calls in one["lines"]:
            spent = lines.setdefault((file, line, function), [0.0, 0.0])
            spent[0] += max(0.0, ns - cost * events)
            spent[1] += calls
    for spent in lines.values():
        spent[0] /= batches
    plain = [ns for one in told for ns in one["plain_ns"]]
    batch_ns = total / batches
    if _by_samples(told, lines) and plain:
        # Samples are of other batches than those that were timed.
        batch_ns = max(sum(plain) / len(plain), sum(spent[0] for spent in lines.values()))
    return {
        "batches": batches,
        "batch_ms": batch_ns / 1e6,
        "lines": [
            {
                "file": file,
                "line": line,
                "function": function,
                "batch_ms": ns / 1e6,
                "calls": calls / batches,
            }
            for (file, line, function), (ns, calls) in sorted(lines.items(), key=lambda item: -item[1][0])
        ],
    }


def _by_samples(told: list[dict[str, Any]], lines: dict[Location, list[float]]) -> bool:
    """Where workers were sampled: the times of ``lines`` (ns a batch) by that. Code inside of a line has its
    own row, as a generator has; all of the line's time is at the one that took longest. False: they were
    not."""
    sampled = times(told)
    if sampled is None:
        return False
    counts, sample_ns = sampled
    rows: dict[tuple[str, int], list[list[float]]] = {}
    for (file, line, _), spent in lines.items():
        rows.setdefault((file, line), []).append(spent)
    for place, several in rows.items():
        whole = sum(spent[0] for spent in several)
        longest = max(several, key=lambda spent: spent[0])
        for spent in several:
            spent[0] = 0.0
        longest[0] = line_ns(whole, counts.get(place, 0.0), sample_ns)
    return True


def _event_cost(one: dict[str, Any]) -> float:
    """Nanoseconds: what makes recorded batches longer than the median other one, if that is near what an
    event of a plain loop costs, or where there are many events: on a busy machine batches differ for other
    reasons too."""
    plain = sorted(one["plain_ns"])
    if not plain or not one["events"]:
        return float(min(one["event_ns"], one["recorded_ns"] / max(1, one["events"])))
    usual = plain[len(plain) // 2] * one["recorded"]
    longer = max(0.0, (one["recorded_ns"] - usual) / one["events"])
    dense = one["events"] * one["event_ns"] > DENSE * one["recorded_ns"]
    return float(longer if dense else min(longer, NEAR * one["event_ns"]))
