"""A timed process that waits for its turn: before its timing window, or between two slices of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, TimeoutError, wait
from types import TracebackType

from warpline.capture.process import INTERRUPTED_S
from warpline.capture.timing import time_steps
from warpline.capture.turn import PATIENCE_S, ResumeFifo
from warpline.measure.ending import Ending
from warpline.model.problem import Problem
from warpline.wire.control import END
from warpline.wire.run import Request
from warpline.wire.timing import Timing

#: Time that our own threads may add to any of the limits on a busy machine.
SPARE_S = 15.0


class BackgroundTiming:
    """One timing in its own thread. Use it as a context manager: its process has always ended after the
    block.
    """

    def __init__(
        self,
        request: Request,
        overlay: Mapping[str, str],
        steps: int | None,
        cancelled: threading.Event | None,
        sliced: bool = False,
        patience_s: float = PATIENCE_S,
        interrupted_s: float = INTERRUPTED_S,
    ) -> None:
        """``request.timeout_s``: limit for the import, and again for the rest of the run, waits not included.
        ``patience_s``: longest wait for one turn. ``interrupted_s``: longest wait for its end once it is
        given up."""
        self.overlay = overlay
        self._request, self._steps = request, steps
        self._cancelled, self._given_up = cancelled, Ending(cancelled)
        self._turn, self.sliced = ResumeFifo(patience_s), sliced
        self._interrupted_s = interrupted_s
        self._gone_by: float | None = None  # on the clock of ``time.monotonic()``
        self.warm = False  # it got to its first slice
        own_s = request.timeout_s or patience_s
        #: The capture has limits for each of its parts; this one covers their sum, in case one does not hold.
        self._late_s = 2 * own_s + patience_s + interrupted_s + SPARE_S
        # The kernel ends a target process when the thread that started it ends, so each has its own thread.
        self._thread = ThreadPoolExecutor(1, "warpline-held")

    def __enter__(self) -> BackgroundTiming:
        self._timing: Future[Timing] = self._thread.submit(
            time_steps,
            self._request,
            self.overlay,
            steps=self._steps,
            cancelled=self._given_up,
            turn=self._turn,
            sliced=self.sliced,
            interrupted_s=self._interrupted_s,
        )
        self._timing.add_done_callback(self._over)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()
        done = self.gone()
        self._thread.shutdown(wait=done)
        if done:  # otherwise its thread still uses the turn
            self._turn.__exit__(kind, error, trace)

    def give_up(self) -> None:
        """End its process, without waiting until it has ended."""
        self._given_up.set()
        if self._gone_by is None:
            self._gone_by = time.monotonic() + self._interrupted_s + SPARE_S

    def gone(self) -> bool:
        """Wait until its process has ended. False if the limit passed first. The limit counts from
        :meth:`give_up`, so processes that are given up together share it."""
        late = self._gone_by or time.monotonic() + self._interrupted_s + SPARE_S
        done, _ = wait([self._timing], timeout=max(0.0, late - time.monotonic()))
        return bool(done)

    @property
    def given_up(self) -> bool:
        """Whether it has to end: it was given up, or the whole measurement was cancelled."""
        return self._given_up.is_set()

    @property
    def over(self) -> bool:
        """Whether its process has ended."""
        return self._timing.done()

    @property
    def failed(self) -> bool:
        """Whether its process has ended with an error."""
        return self.over and self._timing.exception() is not None

    @property
    def group(self) -> int | None:
        """Its process group, once it waits for its turn."""
        return self._turn.group

    def _over(self, timing: Future[Timing]) -> None:
        self._turn.reached.set()
        self._turn.rested.set()

    def ready(self) -> None:
        """Block until the process waits for its turn, or has failed. Raises Problem at its deadline."""
        if not self._turn.reached.wait(self._late_s):
            raise Problem(f"a process did not get its turn within {self._late_s:g} s", 1)

    def result(self) -> Timing:
        """Let the process continue and return its timing. Raises the process's error, usually a Problem."""
        self._turn.come()
        return self._result()

    def slice(self) -> bool:
        """Let the process run until it waits again: at first through its warm-up, then for one slice.

        False if its script ended. Raises the process's error, with status 130 on cancel.
        """
        if self._timing.done():
            return False
        self._turn.come()
        self._turn.rest(self._cancelled)
        if self._timing.done():
            self._timing.result()
            return False
        self.warm = True
        return True

    def end(self) -> Timing:
        """The timing of all slices; call it after the last one."""
        if not self._timing.done():
            self._turn.come(END)
        return self._result()

    def cut_off(self) -> Timing | None:
        """End the process now and return the timing of its slices; None if it has none."""
        self.give_up()
        self.gone()
        if not self._timing.done() or self._timing.exception() is not None:
            return None
        return self._timing.result()

    def _result(self) -> Timing:
        try:
            return self._timing.result(self._late_s)
        except TimeoutError:
            raise Problem(f"a process that was timed did not end within {self._late_s:g} s", 1) from None
