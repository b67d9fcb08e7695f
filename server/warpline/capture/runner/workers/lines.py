"""The lines that load batches: a trace function in the workers, for two batches each.

While the main process is captured, each worker records the lines of its next batches; before that it only
notes how long its batches take. An event costs what makes recorded batches longer than others, divided by
their events. Each line is freed of its own events' cost, so that a line that sleeps keeps its time.
Workers that are spawned, not forked, are not reached: they import torch again.
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
from typing import Any, Callable, Tuple

from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles
from ..patches import Patches
from .sampled import Sampled, line_ns, times

FOLDER = "workers"
#: Batches that a worker records line by line, as design.md asks, and unrecorded ones it remembers.
RECORDED, REMEMBERED = 2, 8
#: Bytes of the shared flag before those of the workers, and how many of those there are.
AT_WORK, MOST_WORKERS = 3, 64
#: Seconds that a recorded batch may take after the capture. Captured steps
#: may be over in less time than a worker needs for one batch.
PATIENCE_S = 5.0
#: Events by which the cost of one is measured.
EVENTS = 2000
#: How many times as much an event may cost as in the plain loop, whose caches are warm.
NEAR = 3.0

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
        #: Shared with every process that is forked from here on: workers record; one has begun a batch so;
        #: workers are sampled. Then for each worker whether it is recording a batch now.
        self.flag = mmap.mmap(-1, AT_WORK + MOST_WORKERS)

    def install(self) -> None:
        from torch.utils.data._utils import worker

        self.patches.replace(worker, "_worker_loop", self._followed)

    def start(self) -> None:
        os.makedirs(self.folder, exist_ok=True)
        self.flag[0] = 1

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
        self.recorded = self.recorded_ns = self.events = 0
        self.spent: dict[Location, list[float]] = {}  # ns, events, calls
        self.sampled = Sampled()
        self.codes: set[CodeType] = set()

    def install(self) -> None:
        from torch.utils.data._utils import fetch

        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            Patches().replace(kind, "fetch", self._timed)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.data import get_worker_info

        def fetch(fetcher: Any, index: Any) -> Any:
            with contextlib.suppress(Exception):  # it costs the samples, not the batch
                self.sampled.batch(bool(self.main.flag[2]))
            if not self.main.flag[0] or self.recorded >= RECORDED or sys.gettrace() is not None:
                began = perf_counter_ns()
                batch = original(fetcher, index)
                self.plain.append(perf_counter_ns() - began)
                return batch
            lines = Lines(self.main.user_files)
            self.main.flag[1] = 1
            place = AT_WORK + (getattr(get_worker_info(), "id", 0) % MOST_WORKERS)
            self.main.flag[place] = 1
            try:
                with lines:
                    batch = original(fetcher, index)
                with contextlib.suppress(Exception):  # a full disk costs these lines, not the batch
                    self._keep(lines)
            finally:
                self.main.flag[place] = 0
            return batch

        return fetch

    def _keep(self, lines: Lines) -> None:
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
        told = {
            "recorded": self.recorded,
            "recorded_ns": self.recorded_ns,
            "events": self.events,
            "event_ns": event_ns(),
            "plain_ns": list(self.plain),
            "lines": [[*place, *spent] for place, spent in self.spent.items()],
            "sampled": self.sampled.told(self.main.user_files, self.codes),
        }
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(path + ".part", path)


class Lines:
    """A context: the wall time of each line of the user's in this thread, events of this trace counted."""

    def __init__(self, user_files: UserFiles) -> None:
        self.user_files = user_files
        #: (code, line) -> [ns, events charged to it, times begun]
        self.spent: dict[tuple[Any, int], list[float]] = {}
        self.stack: list[list[float]] = []
        self.charged: list[float] | None = None
        self.events = 0
        self.total_ns = 0

    def __enter__(self) -> Lines:
        self.began = self.last = perf_counter_ns()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)
        self.total_ns = perf_counter_ns() - self.began

    def _charge(self) -> None:
        now = perf_counter_ns()
        self.events += 1
        if self.charged is not None:
            self.charged[0] += now - self.last
            self.charged[1] += 1
        self.last = now

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.user_files[frame.f_code.co_filename] is None or frame.f_code.co_name in WITHIN_A_LINE:
            return None
        self._charge()
        self.stack.append(self.charged)  # type: ignore[arg-type]  # None: outside the user's files
        self.charged = self._row(frame)
        return self._line

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
        batch_ns = sum(plain) / len(plain)
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
    own row, as a generator has; all of the line's time stands at the one that took longest. False: they were
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
    event of a plain loop costs: on a busy machine batches differ for other reasons too."""
    plain = sorted(one["plain_ns"])
    if not plain or not one["events"]:
        return float(min(one["event_ns"], one["recorded_ns"] / max(1, one["events"])))
    usual = plain[len(plain) // 2] * one["recorded"]
    return float(min(max(0.0, (one["recorded_ns"] - usual) / one["events"]), NEAR * one["event_ns"]))
