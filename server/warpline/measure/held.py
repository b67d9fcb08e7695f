"""A process that was started ahead of its turn: it has imported torch, and waits."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from warpline.capture.launch import time_steps
from warpline.capture.timing import Timing
from warpline.capture.turn import Turn
from warpline.measure.ending import Ending
from warpline.model.run import Request


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
    ) -> None:
        """``request.timeout_s`` is for the import, and once more for all that comes after it."""
        self.overlay = overlay
        self._request, self._steps = request, steps
        self._given_up = Ending(cancelled)
        self._turn = Turn()
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
        )
        self._timing.add_done_callback(lambda timing: self._turn.reached.set())
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

    def ready(self) -> None:
        """Wait until the process waits for its turn, or has failed before."""
        self._turn.reached.wait()

    def result(self) -> Timing:
        """Let the process go on; its timing. Raises what went wrong, Problem as a rule."""
        self._turn.come()
        return self._timing.result()
