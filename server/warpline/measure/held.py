"""A process that waits for its turn: started ahead of it, or between two slices of its window."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from warpline.capture.launch import time_steps
from warpline.capture.timing import Timing
from warpline.capture.turn import END, Turn
from warpline.measure.ending import Ending
from warpline.wire.run import Request


class Held:
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
    ) -> None:
        """``request.timeout_s`` is for the import, and once more for all that comes after it (``sliced``:
        up to the first slice, and for each slice of ``steps`` steps)."""
        self.overlay = overlay
        self._request, self._steps = request, steps
        self._given_up = Ending(cancelled)
        self._turn, self._sliced = Turn(), sliced
        # The kernel ends a target when the thread that started it ends: it has one to itself.
        self._thread = ThreadPoolExecutor(1, "warpline-held")

    def __enter__(self) -> Held:
        self._timing: Future[Timing] = self._thread.submit(
            time_steps,
            self._request,
            self.overlay,
            steps=self._steps,
            cancelled=self._given_up,
            turn=self._turn,
            sliced=self._sliced,
        )
        self._timing.add_done_callback(self._over)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()
        self._thread.shutdown()
        self._turn.__exit__(kind, error, trace)

    def give_up(self) -> None:
        """End its process, without waiting for that."""
        self._given_up.set()

    def gone(self) -> None:
        """Wait until nothing of its process is left."""
        self._timing.exception()

    @property
    def group(self) -> int | None:
        """Its process group, once it rests."""
        return self._turn.group

    def _over(self, timing: Future[Timing]) -> None:
        self._turn.reached.set()
        self._turn.rested.set()

    def ready(self) -> None:
        """Wait until the process waits for its turn, or has failed before."""
        self._turn.reached.wait()

    def result(self) -> Timing:
        """Let the process go on; its timing. Raises what went wrong, Problem as a rule."""
        self._turn.come()
        return self._timing.result()

    def slice(self) -> None:
        """Let the process go on up to where it rests next: at first through its warm-up, then one slice.

        Raises what went wrong.
        """
        self._turn.come()
        self._turn.rest()
        if self._timing.done():
            self._timing.result()

    def end(self) -> Timing:
        """After the last slice: the timing of all of them."""
        self._turn.come(END)
        return self._timing.result()
