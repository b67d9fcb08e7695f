"""After the capture, while the script trains on: times a few steps now and then, and divides one more among
its lines."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from time import monotonic, time_ns
from typing import TYPE_CHECKING

from ....wire.stages import ENDING
from ....wire.trend import MOST, STEPS, TREND, Trend, Window
from ..device.memory import MemoryWatch
from .hostlines import HostLines
from .stages import Stage, differences

if TYPE_CHECKING:
    from ..session import Session

NEVER = 1 << 62
WRITE_S = 1.0  # least time between two writes


class Watching(Stage):
    """Costs little: between windows a counter per step, in a window a time stamp per step and two
    synchronizations. Lines are recorded so rarely that they take at most ``hostlines.COST`` of the time."""

    complete = True

    def __init__(self, session: Session) -> None:
        """Open the run's folder by descriptor, because the server renames it later."""
        super().__init__(session)
        self.folder = os.open(session.control.folder, os.O_RDONLY)
        self.every = max(session.control.request.every, STEPS + 1)

    def begin(self) -> None:
        self.memory = MemoryWatch(self.session.torch)
        self.windows: list[Window] = []
        self.stamps: list[int] = []
        self.step = self.next = self.at_last = 0  # ``at_last``: the step that the last window ended with
        self.last_ns = 0
        self.written = monotonic()
        self.lines = HostLines(self.session.recorder)
        self.session.steps.go_on()

    def tick(self) -> None:
        self.step += 1
        if self.step < self.next and not self.lines.recording:
            return
        try:
            if self.lines.recording:
                self._divided()
            if self.step >= self.next:
                self._watch()
        except Exception:  # never disturb the script for this: the report is made
            self.next = NEVER

    def _watch(self) -> None:
        if not self.stamps:
            self.session.synchronize()
        if len(self.stamps) == STEPS:
            self._measured()
        else:
            self.stamps.append(time_ns())

    def ended(self) -> None:
        self.lines.stop()
        try:
            self._write()
        except OSError:
            pass

    def forked(self) -> None:
        self.windows = []
        self.next = NEVER
        self.lines.stop()

    def _measured(self) -> None:
        self.session.synchronize()
        self.stamps.append(time_ns())
        began, ended = self.stamps[0], self.stamps[-1]
        first = self.step - STEPS
        between = (began - self.last_ns) / max(1, first - self.at_last) if self.last_ns else None
        self.windows.append(
            Window(
                first, began, differences(self.stamps), (ended - began) / STEPS, self.memory.now(), between
            )
        )
        self.stamps, self.last_ns, self.at_last = [], ended, self.step
        if len(self.windows) > MOST:
            del self.windows[1::2]
            self.every *= 2
        self.next = self.step + self.every - STEPS
        if self.lines.due():
            self.lines.start()
        if monotonic() - self.written > WRITE_S:
            self._write()
            self.session.pipe.progress(ENDING, self.step, None, "watching: step %d" % self.step)

    def _divided(self) -> None:
        """The step after a window is over, in which lines were recorded."""
        last = self.windows[-1]
        lines_ns = self.lines.take(self.every * last.step_ns)
        self.last_ns, self.at_last = time_ns(), self.step
        took_ns = self.last_ns - last.began_ns - sum(last.steps_ns)
        self.windows[-1] = replace(last, lines_ns=lines_ns, lines_took_ns=took_ns)

    def _write(self) -> None:
        """Write the windows and rename the file: a reader finds the old content or the new. Raises
        OSError."""
        self.written = monotonic()
        scratch = "." + TREND
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666, dir_fd=self.folder)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(asdict(Trend(self.every, tuple(self.windows), self.lines.places())), file)
        os.replace(scratch, TREND, src_dir_fd=self.folder, dst_dir_fd=self.folder)
