"""After the capture of a script that generates text: one prefill, unless a captured step was one.

A call of ``generate`` has one prefill and up to hundreds of decode steps, so the few captured steps seldom
have it, and if it were added to them, their mean would have far too much of it.
"""

from __future__ import annotations

import threading
from time import time_ns
from typing import TYPE_CHECKING

from ....wire.stages import CAPTURING
from ..device import kinds
from .noise import without_complaint
from .sampling import LastSampling
from .stages import Stage

if TYPE_CHECKING:
    from ..session import Session
    from .recording import Recording

#: The wait for the next call of ``generate`` ends with the first step after this time: calls take minutes.
LONGEST_NS = 10_000_000_000
#: Without any step, as in a server that has no request left, it ends after this time, which is longer, so
#: that steps end the wait where there are some.
NO_STEP_S = 15.0
#: How long the script's end waits for a run that another thread is writing at that moment.
WRITING_S = 20.0


class Prefill(Stage):
    """Times the next prefill if none was timed, and records the one after it for the device's work in it."""

    complete = True

    def __init__(self, session: Session, captured: list[int]) -> None:
        """``captured``: the boundaries of the captured steps, in ns."""
        super().__init__(session)
        self.captured = captured
        self.recording: Recording | None = None
        self.timed_from: int | None = None  # ns; of the prefill that runs
        self.late: threading.Timer | None = None
        self.claimed = threading.Lock()  # by what ends the wait, never released; the recording has another
        self.thread = 0  # that records
        self.over = threading.Event()

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
        self.late = self.after(NO_STEP_S, self.cut_short)

    def tick(self) -> None:
        session = self.session
        session.boundaries += 1
        if self.claimed.locked():
            return
        if self.recording is not None:
            if self._claim():
                session.synchronize()
                self._stop_recording(self.recording)
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
            if self._claim():
                self._go_on()
        elif begins and not session.own_profiler.in_the_way:  # torch has one recording at a time
            session.synchronize()
            if self.times:
                self.timed_from = time_ns()
                return
            if self._claim():
                self._record()

    def _record(self) -> None:
        """Record until the next step ends."""
        # It imports torch, which the script may not have done when this module is.
        from .recording import Recording

        session = self.session
        if self.late is not None:
            self.late.cancel()
        recording = Recording(kinds.used(session.torch).accelerated, events=True)
        session.recorder.quiet.start(session.torch)
        with without_complaint():
            recording.prepare()
        recording.start()
        self.recording, self.thread = recording, threading.get_ident()
        self.claimed = threading.Lock()
        self.late = self.after(NO_STEP_S, self.cut_short)

    def _stop_recording(self, recording: Recording) -> None:
        recording.stop()
        self.session.recorder.quiet.stop()

    def _claim(self) -> bool:
        """Whether the caller is the first to end the wait."""
        return self.claimed.acquire(blocking=False)

    def _go_on(self) -> None:
        session, captured = self.session, self.captured
        if session.samples_lines() and session.windows.sampled_last:
            self.abandon()
            session.go(lambda session: LastSampling(session, captured))
            self.over.set()
        else:
            self._finish()

    def _finish(self) -> None:
        try:
            self.abandon()
            self.session.finish_capture(self.captured)
        finally:
            self.over.set()

    def _finish_unsampled(self) -> None:
        session = self.session
        if session.samples_lines() and session.windows.sampled_last:
            session.samples.why = "too few steps were left"
        self._finish()

    def cut_short(self) -> None:
        """Also where no step ended in time; then it runs on the timer's thread."""
        if self._claim():
            self._finish_unsampled()

    def abandon(self) -> None:
        self._claim()
        if self.late is not None:
            self.late.cancel()
        recording, self.recording = self.recording, None
        # On another thread torch cannot stop it: older versions raise, newer ones print and lose it.
        if recording is not None and self.thread == threading.get_ident():
            if recording.result is None:
                self._stop_recording(recording)
            recording.discard()

    def ended(self) -> None:
        self.at_end = True
        if self._claim() or (not self.over.wait(WRITING_S) and self._claim()):
            self.session.guarded(self._finish_unsampled, None)()
