"""The last window: nothing is recorded, and a process of its own asks, many times a second, which line runs."""

from __future__ import annotations

import os
import threading
from time import monotonic_ns
from typing import TYPE_CHECKING

from ....wire.samples import LEAST_NS, MOST_NS
from ....wire.stages import CAPTURING
from ..sampler.child import START_S
from ..sampler.frames import Frames
from ..sampler.pyspy import PySpy
from .stages import Stage

if TYPE_CHECKING:
    from ..session import Session

NOT_SAMPLED = "times of lines of plain Python are estimates"
LONGEST = 3.0  # times the window: then the script does something else than its steps
AFTER = 0.2  # of the time sampled may lie after the last step's end
OTHERS = 0.05  # and in what only steps of another class did


class Sampling(Stage):
    """Whole steps, until they were sampled for long enough; or until the script ends, or stays away from
    its steps for too long."""

    complete = True

    def __init__(self, session: Session, captured: list[int]) -> None:
        """``captured``: the boundaries of the captured steps."""
        super().__init__(session)
        self.captured = captured

    def begin(self) -> None:
        session = self.session
        session.pipe.progress(CAPTURING, 0, None, "sampling the lines")
        session.own_profiler.measuring = False
        try:
            self.sampler = self._sampler()
        except OSError as error:
            self._failed(error)
            session.finish_capture(self.captured)
            return
        step_ns = self.step_ns = sum(session.timed) / max(1, len(session.timed))
        self.others_ns = 0.0  # what steps of other classes took besides
        session.observers.signals.take()
        steps = max(1, round(LEAST_NS / max(1, step_ns)))
        window_ns = min(MOST_NS, (steps - 0.5) * step_ns)
        self.began_ns = self.last_ns = monotonic_ns()
        self.until_ns = self.began_ns + window_ns
        self.ending = threading.Lock()  # held for ever by whoever ends it
        self.deadline = threading.Timer(LONGEST * window_ns / 1e9 + START_S, session.guarded(self._end, None))
        self.deadline.daemon = True
        self.deadline.start()

    def _sampler(self) -> Frames | PySpy:
        """Raises OSError."""
        session = self.session
        try:
            return Frames(session.recorder.locations.codes())
        except OSError:
            os.makedirs(session.control.folder, exist_ok=True)
            path = os.path.join(session.control.folder, "samples.raw")
            return PySpy(session.windows.sampler, path)

    def tick(self) -> None:
        session, before_ns = self.session, self.last_ns
        session.boundaries += 1
        self.last_ns = monotonic_ns()
        if session.classes.is_other(session.observers.signals.take()):
            self.others_ns += max(0.0, self.last_ns - before_ns - self.step_ns)
        if self.last_ns >= self.until_ns:
            self._end()

    def ended(self) -> None:
        self.at_end = True
        self.session.guarded(self._end, None)()

    def _end(self) -> None:
        if not self.ending.acquire(blocking=False):
            return
        session = self.session
        self._stop()
        after_ns = monotonic_ns() - self.last_ns
        try:
            samples = self.sampler.found(session.observers.user_files)
            if self.others_ns > OTHERS * (self.last_ns - self.began_ns):
                session.notes.append(
                    "lines were not sampled (something else ran, such as an evaluation): " + NOT_SAMPLED
                )
            elif after_ns <= AFTER * (self.last_ns - self.began_ns):
                session.observers.facts["samples"] = samples
            else:
                session.notes.append("lines were not sampled (too few steps were left): " + NOT_SAMPLED)
        except OSError as error:
            self._failed(error)
        session.finish_capture(self.captured)

    def abandon(self) -> None:
        if self.ending.acquire(blocking=False):
            self._stop()

    def _stop(self) -> None:
        self.deadline.cancel()
        self.sampler.stop()

    def _failed(self, error: OSError) -> None:
        self.session.notes.append("lines were not sampled (py-spy: %s): %s" % (error, NOT_SAMPLED))
