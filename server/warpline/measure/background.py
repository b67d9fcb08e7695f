"""A process that waits for its turn: started ahead of it, or between two slices of its window."""

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

#: What our own threads may add to any of the limits, on a machine that is busy.
SPARE_S = 15.0


class BackgroundTiming:
    """One timing in a thread of its own, from the start on. Use as a context manager: whatever
    happens, its process is gone after it.
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
        """``request.timeout_s`` is for the import, and once more for all that comes after it but waiting.
        ``patience_s``: the longest wait for one turn; ``interrupted_s``: for its end when it is given up."""
        self.overlay = overlay
        self._request, self._steps = request, steps
        self._cancelled, self._given_up = cancelled, Ending(cancelled)
        self._turn, self.sliced = ResumeFifo(patience_s), sliced
        self._interrupted_s = interrupted_s
        self._gone_by: float | None = None  # on the clock of ``time.monotonic()``
        own_s = request.timeout_s or patience_s
        #: The capture has limits for all that it does: this one only sees that they hold.
        self._late_s = 2 * own_s + patience_s + interrupted_s + SPARE_S
        # The kernel ends a target when the thread that started it ends: it has one to itself.
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
        if done:  # else its thread still uses the turn
            self._turn.__exit__(kind, error, trace)

    def give_up(self) -> None:
        """End its process, without waiting for that."""
        self._given_up.set()
        if self._gone_by is None:
            self._gone_by = time.monotonic() + self._interrupted_s + SPARE_S

    def gone(self) -> bool:
        """Wait until nothing of its process is left. False when the limit passed, which counts from when it
        was given up, so that several that were given up together share one."""
        late = self._gone_by or time.monotonic() + self._interrupted_s + SPARE_S
        done, _ = wait([self._timing], timeout=max(0.0, late - time.monotonic()))
        return bool(done)

    @property
    def given_up(self) -> bool:
        """It, or everything that runs, has to end."""
        return self._given_up.is_set()

    @property
    def over(self) -> bool:
        """Its process has ended."""
        return self._timing.done()

    @property
    def failed(self) -> bool:
        """Its process has ended, and not well."""
        return self.over and self._timing.exception() is not None

    @property
    def group(self) -> int | None:
        """Its process group, once it rests."""
        return self._turn.group

    def _over(self, timing: Future[Timing]) -> None:
        self._turn.reached.set()
        self._turn.rested.set()

    def ready(self) -> None:
        """Wait until the process waits for its turn, or has failed. Raises Problem at its deadline."""
        if not self._turn.reached.wait(self._late_s):
            raise Problem(f"a process did not get its turn within {self._late_s:g} s", 1)

    def result(self) -> Timing:
        """Let the process go on; its timing. Raises what went wrong, Problem as a rule."""
        self._turn.come()
        return self._result()

    def slice(self) -> bool:
        """Let the process go on up to where it rests next: at first through its warm-up, then one slice.

        False when its script ended. Raises what went wrong, with status 130 when that is a cancel.
        """
        if self._timing.done():
            return False
        self._turn.come()
        self._turn.rest(self._cancelled)
        if self._timing.done():
            self._timing.result()
            return False
        return True

    def end(self) -> Timing:
        """After the last slice: the timing of all of them."""
        if not self._timing.done():
            self._turn.come(END)
        return self._result()

    def cut_off(self) -> Timing | None:
        """End it where it is: the timing of the slices that it made, if there are any."""
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
