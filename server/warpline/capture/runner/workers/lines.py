"""Records the lines that load batches: a trace function in each worker, for two batches.

During the capture, each worker records the lines of its next batches. Otherwise it only times its batches:
that alone tells whether the workers keep up, also where the captured steps find all batches loaded.
The cost of a trace event is the extra time of recorded batches divided by their events. It is subtracted from
each line once per event of that line, so a line that sleeps keeps its time. Workers that are spawned instead
of forked import all of this again (``spawned``).

With few steps the capture comes last, and by then the workers have loaded all batches. So each worker also
records its first batch, except the first sample, which may include one-time work. All workers are late by
about the same time, so the steps wait for this only once, at the first batch. With more steps the script may
still end in the capture, or no worker begin a batch in it: a few samples of each worker's second batch are
recorded then, if it comes before steps are timed.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
from collections import deque
from linecache import getline
from time import monotonic, perf_counter_ns, process_time_ns, sleep
from types import CodeType
from typing import Any, Callable

from ..lines.names import QualifiedNames
from ..lines.userfiles import UserFiles
from ..patches import Patches
from ..windows.queued import Queued
from .sampled import Sampled
from .spawned import Followed
from .traced import Lines, Location, event_ns

FOLDER, SHARED = "workers", "flag"
#: Number of batches that a worker records, and of unrecorded ones whose times it keeps.
RECORDED, REMEMBERED = 2, 8
#: How many of those it records before steps are timed, if steps are few.
EARLY = 1
#: The results are written after so many unrecorded batches, with their times.
WRITTEN_AFTER = (1, 4)
#: The shared flag: index of the first byte of the workers, and number of these bytes.
AT_WORK, MOST_WORKERS = 4, 64
#: Subsets of subsets that are looked into, and characters that are kept of a library's line.
MOST_SUBSETS, MOST_TEXT = 4, 200
#: Seconds that a recorded batch may take after the capture. Captured steps
#: may be over in less time than a worker needs for one batch.
PATIENCE_S = 5.0


class WorkerLines:
    """Lets the workers of this process record, from ``start`` on."""

    def __init__(self, user_files: UserFiles, names: QualifiedNames, folder: str) -> None:
        self.user_files = user_files
        self.names = names
        self.folder = os.path.join(folder, FOLDER)
        self.patches = Patches()
        self.early = False  # first batches were recorded
        #: Memory shared with all processes forked from here on. Bytes: how many batches each worker may
        #: record; whether one has begun to; whether workers are sampled; whether it is their second
        #: batches; then per worker, whether it records now.
        self.flag = mmap.mmap(-1, AT_WORK + MOST_WORKERS)
        self.shared = ""  # the file with these bytes, once a worker is spawned

    @classmethod
    def of(cls, told: dict[str, Any]) -> WorkerLines:
        """Make it in a spawned worker, from what the main process has ``told``."""
        lines = cls(UserFiles(told["roots"], told["include"]), QualifiedNames(), told["folder"])
        lines._share(told["shared"])
        return lines

    def told(self) -> dict[str, Any]:
        """What a spawned worker needs to know. Raises OSError where it cannot be told."""
        if not self.shared:
            os.makedirs(self.folder, exist_ok=True)
            path = os.path.join(self.folder, SHARED)
            with open(path, "wb") as file:
                file.write(self.flag[:])
            self._share(path)
        return {
            "roots": self.user_files.roots,
            "include": self.user_files.include,
            "folder": os.path.dirname(self.folder),
            "shared": self.shared,
        }

    def _share(self, path: str) -> None:
        """Workers that were forked before go on with the bytes as they were."""
        with open(path, "r+b") as file:
            self.flag = mmap.mmap(file.fileno(), AT_WORK + MOST_WORKERS)
        self.shared = path

    def follow(self) -> None:
        """Watch the batches of this process, which is a worker."""
        Worker(self).install()
        os.makedirs(self.folder, exist_ok=True)

    def install(self) -> None:
        """Watch each worker from its start."""
        from torch.utils.data._utils import worker

        self.patches.replace(worker, "_worker_loop", lambda original: Followed(self, original))

    def start(self, most: int = RECORDED, second: bool = False) -> None:
        """Let each worker record ``most`` batches, or until ``pause``. ``second``: only a part of its second
        one."""
        self.early |= most == EARLY and not second
        self.flag[0], self.flag[3] = most, second

    def pause(self) -> None:
        """No worker records from here on."""
        self.flag[0] = 0

    def sample(self, wanted: bool) -> None:
        """Whether workers are to be sampled."""
        self.flag[2] = wanted

    def remove(self) -> None:
        """Stop the workers' records and put torch's own back."""
        self.flag[0] = self.flag[2] = 0
        self.patches.restore()

    def found(self) -> list[dict[str, Any]]:
        """What the workers have written so far. Removes their folder."""
        self._wait_for_them()
        told = []
        with contextlib.suppress(OSError):
            for name in self._names():
                path = os.path.join(self.folder, name)
                with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                    told.append(json.load(file))
                os.unlink(path)
            os.rmdir(self.folder)
        return told

    def _names(self) -> list[str]:
        """List the files that workers have written; the first worker makes their folder."""
        try:
            return os.listdir(self.folder)
        except OSError:
            return []

    def _wait_for_them(self) -> None:
        """Wait until workers that are recording a batch have written it, at most ``PATIENCE_S``."""
        processes = sys.modules.get("multiprocessing")
        deadline = monotonic() + PATIENCE_S
        while self.flag[1] and processes is not None and processes.active_children():
            written = any(name.endswith(".json") for name in self._names())
            if monotonic() > deadline or (written and not any(self.flag[AT_WORK:])):
                return
            sleep(0.01)


class Worker:
    """The part that runs in a worker process."""

    def __init__(self, main: WorkerLines) -> None:
        self.main = main
        self.plain: deque[int] = deque(maxlen=REMEMBERED)
        self.working: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)  # processor time, time queued for it
        self.recorded = self.recorded_ns = 0
        self.left = RECORDED  # batches that it may still record, but for the second one
        self.second = True  # it may still record that
        self.brief = False  # only that is recorded
        self.events = 0.0
        self.spent: dict[Location, list[float]] = {}  # ns, events, calls
        self.sampled = Sampled()
        self.codes: set[CodeType] = set()
        self.event_ns: float | None = None  # once it has been measured
        self.library: str | None = None  # folder of the dataset's package, whose lines are recorded

    def install(self) -> None:
        """Time ``fetch``, which makes a batch."""
        from torch.utils.data._utils import fetch

        for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            Patches().replace(kind, "fetch", self._timed)

    def _timed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from torch.utils.data import get_worker_info

        def fetch(fetcher: Any, index: Any) -> Any:
            with contextlib.suppress(Exception):  # it costs the samples, not the batch
                self.sampled.batch(bool(self.main.flag[2]))
            second = bool(self.main.flag[3])
            over = RECORDED - self.left >= self.main.flag[0]
            if second:
                over = not (self.main.flag[0] and self.second and self.plain)
            if over or sys.gettrace() is not None:
                queued, computed, began = Queued(), process_time_ns(), perf_counter_ns()
                batch = original(fetcher, index)
                self.plain.append(perf_counter_ns() - began)
                self.working.append((process_time_ns() - computed, queued.stop() or 0))
                if len(self.plain) in WRITTEN_AFTER:
                    with contextlib.suppress(Exception):
                        self._write()
                return batch
            with contextlib.suppress(Exception):  # lines of the user's are all that is recorded then
                self._know_library(getattr(fetcher, "dataset", None))
            first = not self.recorded and not self.plain
            lines = Lines(self.main.user_files, _length(index), without_first=first, brief=second)
            self.second &= not second
            self.left -= not second
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

    def _know_library(self, dataset: Any) -> None:
        """Record lines of the package that the dataset's class is from, where that is none of the user's: a
        sample is made of its calls. Only this process does."""
        for _ in range(MOST_SUBSETS):  # torch's own, as Subset
            if not type(dataset).__module__.startswith("torch."):
                break
            dataset = getattr(dataset, "dataset", None)
        name = type(dataset).__module__.partition(".")[0]
        package = os.path.dirname(getattr(sys.modules.get(name), "__file__", None) or "")
        getting = getattr(type(dataset), "__getitem__", None) or getattr(type(dataset), "__iter__", None)
        code = getattr(getting, "__code__", None)
        if self.library is not None or code is None or self.main.user_files[code.co_filename] is not None:
            return
        if code.co_filename.startswith(os.path.join(package, "")):
            self.library = os.path.join(package, "")
            self.main.user_files.include_too(package)

    def _keep(self, lines: Lines) -> None:
        if lines.failed:  # another one would be as long
            self.left = self.left if lines.brief else 0
            return
        if self.brief and not lines.brief:  # what is recorded in the capture says more
            self.recorded, self.recorded_ns, self.events = 0, 0, 0.0
            self.spent.clear()
        self.brief = lines.brief
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

    def _text(self, place: Location) -> str:
        """The line's text where it is a library's: the server does not have that."""
        within = self.library is not None and place[0].startswith(self.library)
        return getline(place[0], place[1]).strip()[:MOST_TEXT] if within else ""

    def _write(self) -> None:
        path = os.path.join(self.main.folder, "%d.json" % os.getpid())
        if self.event_ns is None and self.recorded:
            self.event_ns = event_ns()
        told = {
            "recorded": self.recorded,
            "brief": self.brief,
            "recorded_ns": self.recorded_ns,
            "events": self.events,
            "event_ns": self.event_ns,
            "plain_ns": list(self.plain),
            "working_ns": list(self.working),
            "lines": [[*place, *spent, self._text(place)] for place, spent in self.spent.items()],
            "sampled": self.sampled.told(self.main.user_files, self.codes),
        }
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.replace(path + ".part", path)


def _length(index: Any) -> int:
    """Samples of a batch, by what the loader asks for."""
    return len(index) if isinstance(index, (list, tuple)) else 1
