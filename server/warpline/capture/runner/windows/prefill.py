"""After the capture of a script that generates text: one prefill, unless a captured step was one.

A call of ``generate`` has one prefill and up to hundreds of decode steps, so the few captured steps seldom
have it, and if it were added to them, their mean would have far too much of it.
"""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

from ....wire.stages import CAPTURING
from ..device import kinds
from .recording import Recording
from .sampling import LastSampling
from .stages import Stage

if TYPE_CHECKING:
    from ..session import Session

#: The wait for the next call of ``generate`` ends after this time: calls may take minutes.
LONGEST_NS = 10_000_000_000


class Prefill(Stage):
    """Times the next prefill if none was timed, and records the one after it for the device's work in it."""

    complete = True

    def __init__(self, session: Session, captured: list[int]) -> None:
        """``captured``: the boundaries of the captured steps, in ns."""
        super().__init__(session)
        self.captured = captured
        self.recording: Recording | None = None
        self.timed_from: int | None = None  # ns; of the prefill that runs

    def begin(self) -> None:
        session = self.session
        frameworks, forwards = session.observers.frameworks, session.steps.chosen == "forward"
        alone = session.control.world == 1  # ranks must not wait for each other here
        # Only the thread that started a recording can end it.
        wanted = alone and forwards and frameworks.generated_ns and not session.steps.moves
        if not wanted or frameworks.first_forwards(self.captured):
            self._go_on()
            return
        session.pipe.progress(CAPTURING, 0, 1, "waiting for a prefill")
        if not session.recorder.saved:
            session.recorder.save()  # before another recording begins
        self.times = not session.observers.facts.get("prefill_steps")
        self.last_ns = time_ns()
        self.until_ns = self.last_ns + LONGEST_NS

    def tick(self) -> None:
        session = self.session
        session.boundaries += 1
        if self.recording is not None:
            session.synchronize()
            self.recording.stop()
            session.observers.facts["prefill_device_ns"] = self.recording.busy_ns()
            self._go_on()
            return
        if self.timed_from is not None:
            session.synchronize()
            session.observers.facts["prefill_ns"] = time_ns() - self.timed_from
            self.timed_from, self.times = None, False
        begins = session.observers.frameworks.generated_ns[-1] > self.last_ns
        self.last_ns = time_ns()
        if self.last_ns > self.until_ns:
            self._go_on()
        elif begins:
            session.synchronize()
            if self.times:
                self.timed_from = time_ns()
                return
            recording = Recording(kinds.used(session.torch).accelerated, events=True)
            recording.prepare()
            recording.start()
            self.recording = recording

    def _go_on(self) -> None:
        self.abandon()
        session, captured = self.session, self.captured
        if session.samples_lines() and session.windows.sampled_last:
            session.go(lambda session: LastSampling(session, captured))
        else:
            session.finish_capture(captured)

    def abandon(self) -> None:
        recording, self.recording = self.recording, None
        if recording is not None:
            if recording.result is None:
                recording.stop()
            recording.discard()

    def ended(self) -> None:
        self.at_end = True
        self.session.guarded(self._go_on, None)()
