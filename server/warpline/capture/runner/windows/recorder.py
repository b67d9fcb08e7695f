"""One capture: torch's profiler and the line records, started and stopped together, and written."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import asdict
from time import time_ns
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, List, Tuple

from ....wire.control import Purpose
from ....wire.inside import INSIDE_PAIRS, INSIDE_TABLE
from ....wire.run import FACTS, LINES, LOCATIONS, RUN_FORMAT, SOURCES, TRACE
from .. import folder
from ..device import kinds
from ..inside.locations import LibraryLines
from ..lines import events, loops
from ..lines.checkpoints import Checkpoints, EngineThreads
from ..lines.marks import LineMarks
from ..waits.tracebacks import Tracebacks
from ..waits.wakes import Wakes
from .appended import append, events_end
from .calibration import library_record_ns, line_record_ns
from .noise import Quiet, without_complaint
from .operatorcost import OperatorCost
from .recording import Recording
from .reserve import Reserve

if TYPE_CHECKING:
    from ..control import Control
    from ..device.usermarks import UserMarks
    from ..lines.locations import Locations
    from ..texts import Texts

#: Lines, library lines, waits, tracebacks.
Records = Tuple[bytes, bytes, List[Tuple[int, int, int, int]], List[Tuple[int, int]]]


class Recorder:
    def __init__(
        self,
        torch: ModuleType,
        control: Control,
        script: str,
        locations: Locations,
        user_marks: UserMarks,
        texts: Texts,
    ) -> None:
        self.torch = torch
        self.control = control
        self.script = script
        self.locations = locations
        self.library = locations.library = LibraryLines(torch, locations)
        self.lines, note = events.usable(locations)
        self.notes = [note] if note else []
        self.checkpoints = Checkpoints(self._enter_thread)
        self.engine_threads = EngineThreads(self._enter_thread)
        self.quiet = Quiet()
        self.wakes = Wakes()
        self.tracebacks = Tracebacks()
        self.user_marks = user_marks
        self.texts = texts
        self.line_marks: LineMarks | None = None
        self.operator_cost = OperatorCost(torch)
        self.recording = Recording(False)  # until ``start``
        self.reserve: Reserve | None = None  # memory for it, where the script needs none but what it has
        self.few_steps = False  # none is left for another capture, if this one does not hold
        self.events = False  # the next recording also keeps when operators began, which costs more
        self.saved = False  # its trace was written
        #: Of the recordings before this one, if a long capture is written in several: lines, library lines,
        #: waits, tracebacks. This one's times are moved back by so many ns, as if there had been no pause.
        self.before: list[Records] = []
        self.earlier_ns = self.before_ns = 0  # that of the last of those
        self.running = False
        self.loops: list[loops.Loop] = []  # quick loops, recorded only at their start and end
        self.never: set[CodeType] = set()  # code of loops taken for plain Python in which an operator ran

    def _enter_thread(self) -> None:
        self.lines.enter_thread()

    def needs_all_threads(self) -> bool:
        """Whether user lines ran on other Python threads that torch does not record yet."""
        others = self.locations.python_threads() > 1
        return others and not self.recording.all_threads and self.recording.can_record_all_threads

    def find_loops(self, step_ns: float) -> bool:
        """Search the recording for quick loops; False if they cost too little to matter.

        If True, this capture has ended and is discarded, and the next one leaves out the lines of the loops
        found. If this recording lacks the times at which operators began, the next one has them (``events``)
        and the search is repeated.
        """
        if self.line_marks is not None or not loops.worth_a_look(self.locations, step_ns):
            return False
        if not self.recording.events:
            self.events = True
            self.discard()
            return True
        self.stop()
        began_ns, cost = self.recording.began_ns(), line_record_ns(type(self.lines))
        if began_ns is not None and cost is not None:
            whole_functions = self.lines.kind == "settrace"
            may_pause = whole_functions and not self.few_steps
            self.loops = loops.find(
                self.locations, began_ns, cost, whole_functions, self.never, may_pause=may_pause
            )
            self.lines.skip(self.loops)
        self.events = bool(self.loops)
        self.discard()
        return True

    def choose_library_lines(self, step_ns: float, steps: int) -> None:
        """After a whole step: leave out code of libraries that runs too many lines. ``steps``: how many are
        captured, at least."""
        self.lines.leave_out(self.library.choose(step_ns, steps))

    def holds(self, last: bool) -> bool:
        """End this capture. False if an operator began where lines were left out: then it is discarded, and
        the next capture records all lines of that code. ``last``: no other recording follows."""
        if last:
            self.operator_cost.watched()
        self.stop()
        if not self.loops:
            return True
        wrong = loops.surprised_by(self.loops, self.locations, self.recording.began_ns() or [])
        if not wrong:
            return True
        self.never |= wrong
        self.loops = [loop for loop in self.loops if loop.code not in self.never]
        self.lines.skip(self.loops)
        self.discard()
        return False

    def prime(self) -> None:
        """Record one operator and discard it, so that the profiler's one-time work is done."""
        self.quiet.start(self.torch)
        recording = Recording(kinds.used(self.torch).accelerated)
        with without_complaint():
            recording.prepare()
        recording.start()
        self.torch.zeros(1).neg_()
        recording.stop()
        recording.discard()
        self.quiet.stop()

    def start(self, all_threads: bool) -> None:
        """Start torch's profiler and the line records. ``all_threads``: of every thread, not only this
        one."""
        self.running = True
        self.lines, note = events.usable(self.locations, self.lines)
        self.notes += [note] if note else []
        self.quiet.start(self.torch)
        # We must not initialize a device; but a script captured as a whole may still do so.
        device = kinds.used(self.torch).accelerated or self.control.purpose is Purpose.WHOLE
        self.recording = Recording(device, all_threads, self.events)
        if self.reserve is not None:
            self.reserve.take()
        with without_complaint():
            self.recording.prepare()
        self.recording.start()
        self.checkpoints.install()
        self.engine_threads.install()
        self.user_marks.recording = True
        self.wakes.start()
        self.tracebacks.start(self.lines)
        if self.control.request.nvtx:
            self._mark_lines()
        self.library.begin()
        self.lines.start()

    def _mark_lines(self) -> None:
        marks = LineMarks(self.torch, self.locations)
        if marks.possible:
            self.line_marks = marks
            self.locations.mark_with(marks)
        else:
            self.notes.append("no NVTX ranges could be written: install the nvtx package beside torch")

    def step(self, number: int | None) -> None:
        """Step ``number`` of the captured ones begins; None: they are over."""
        if self.line_marks is not None:
            self.line_marks.step(number)

    def stop(self) -> None:
        """Stop both; the recording is kept until it is written or discarded."""
        if not self.running:
            return
        self.running = False
        self.notes += self.lines.stop()
        self.step(None)
        self.user_marks.recording = False
        self.wakes.stop()
        self.tracebacks.stop()
        self.checkpoints.remove()
        self.engine_threads.remove()
        self.recording.stop()
        self.quiet.stop()
        if self.reserve is not None:
            self.reserve.give_back()

    def discard(self) -> None:
        """End this capture; nothing of it is kept in memory."""
        self.stop()
        self.recording.discard()
        self.saved = False
        self.locations.clear_records()

    def forget(self) -> None:
        """Called in a forked child: nothing is recorded there."""
        if self.lines.running:
            self.lines.stop()
        self.wakes.stop()
        self.tracebacks.stop()

    def save(self) -> int:
        """Write the trace of what was captured; returns its size in bytes."""
        os.makedirs(self.control.folder, exist_ok=True)
        path = os.path.join(self.control.folder, TRACE)
        self.saved = True
        if self.before:
            more = path + ".more"
            try:
                self.recording.save(more)
            except OSError:
                with contextlib.suppress(OSError):
                    os.remove(more)
                raise
            return append(path, more, self.earlier_ns // 1000, len(self.before))
        self.recording.save(path)
        return os.path.getsize(path)

    def written(self) -> int:
        """Bytes of the trace that later recordings do not change; 0 if none was kept. Raises OSError."""
        return events_end(os.path.join(self.control.folder, TRACE)) if self.before else 0

    def keep(self) -> None:
        """Make room for the recording that continues the capture. This one's trace is written."""
        self.before.append(self._records())
        self.before_ns = self.earlier_ns
        self.discard()

    def only_before(self) -> None:
        """Discard this recording; the run is made of those before it."""
        self.discard()
        self.wakes.waits, self.tracebacks.spans = [], []
        self.earlier_ns = self.before_ns
        self.saved = True

    def forget_before(self) -> None:
        """The capture begins from its first step again."""
        self.before, self.earlier_ns = [], 0

    def _records(self) -> Records:
        """Lines, library lines, waits and tracebacks of this recording."""
        loops.share_out(self.loops, self.locations)
        by = self.earlier_ns
        self.locations.move_back(by)
        waits = [(begin - by, end - by, thread, waker) for begin, end, thread, waker in self.wakes.waits]
        tracebacks = [(begin - by, end - by) for begin, end in self.tracebacks.spans]
        return self.locations.packed(), self.locations.packed_library(), waits, tracebacks

    def write(self, manifest: dict[str, Any], facts: dict[str, Any]) -> None:
        """The whole run folder; ``manifest`` and ``facts`` are what only the session knows."""
        path = self.control.folder
        if not self.saved:
            self.save()
        lines, library, waits, tracebacks = zip(*self.before, self._records())
        folder.write_bytes(path, LINES, b"".join(lines))
        folder.write_bytes(path, INSIDE_PAIRS, b"".join(library))
        folder.write(path, INSIDE_TABLE, self.library.as_dict())
        estimated = {place: times for loop in self.loops for place, times in loop.times.items()}
        folder.write(path, LOCATIONS, {**self.locations.as_dict(), "estimated": list(estimated.items())})
        in_sites = [site["file"] for site in facts["sites"]]
        in_sites += [line["file"] for line in (facts["workers"] or {}).get("lines", ())]
        in_sites += [file for graph in facts["captured_graphs"] for file, _, _ in graph["lines"]]
        for site in facts["sites"]:
            in_sites += [frame["file"] for frame in site.get("frames", ())]
            holders = (argument["holder"] for argument in site.get("arguments", ()))
            in_sites += [holder["file"] for holder in holders if holder is not None]
        files = [*self.locations.files, *in_sites, *self.texts.beside(os.path.dirname(self.script))]
        folder.write(path, SOURCES, self.texts.of(files, self.locations.codes()))
        line_cost = line_record_ns(type(self.lines)) if self.line_marks is None else None
        library_cost = library_record_ns(self.torch, type(self.lines), line_cost)
        costs = {
            "thread_waits": [wait for some in waits for wait in some],
            "traceback_ns": [span for some in tracebacks for span in some],
            "line_record_ns": line_cost,
            "library_record_ns": library_cost,
            **self.operator_cost.facts(),
        }
        folder.write(path, FACTS, {**facts, **costs})
        folder.write_manifest(
            path,
            {
                "format": RUN_FORMAT,
                "created_ns": time_ns(),
                "script": self.script,
                "argv": self.control.argv,
                "python_version": "%d.%d.%d" % sys.version_info[:3],
                "torch_version": str(self.torch.__version__),
                "device": kinds.used(self.torch).facts(),
                "request": asdict(self.control.request),
                "line_events": self.lines.kind,
                "roots": [root.rstrip(os.sep) for root in self.locations.user_files.roots],
                "rank": self.control.rank,
                "world_size": self.control.world,
                "paused_ns": self.earlier_ns,
                **manifest,
            },
        )
