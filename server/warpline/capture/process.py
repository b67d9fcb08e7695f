"""The target process: started in a session of its own, listened to, and ended as a whole tree."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from warpline.capture import tree
from warpline.capture.control import Control
from warpline.capture.outcome import Outcome
from warpline.capture.progress import Progress
from warpline.model.problem import Problem
from warpline.model.run import Request

BOOT = Path(__file__).parent / "runner" / "boot.py"
ENDING_S = 20.0  # how long a script may take to end after it was told to
INTERRUPTED_S = 5.0  # the same after Ctrl-C


class Target:
    """Use as a context manager: whatever happens, nothing of the process tree is left after it."""

    def __init__(self, request: Request, control: Control, *, stdin: int | None, output: int) -> None:
        self.request = request
        self.control = control
        self.stdin = stdin
        self.output = output
        self.messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.name = request.target if request.module else Path(request.target).name
        self.mark = f"{os.getpid()}-{Path(control.pipe).parent.name}"

    def __enter__(self) -> Target:
        # Opened for reading and writing: it never reports an end, however often ranks come and go.
        self.pipe = os.open(self.control.pipe, os.O_RDWR | os.O_CLOEXEC)
        environment = {**os.environ, **self.request.environment, tree.MARK: self.mark}
        command = [*self.request.launcher, str(BOOT), str(self.control.path)]
        if not self.request.launcher:
            command = [self.request.python, *command]
        try:
            self.process = subprocess.Popen(
                command,
                cwd=self.request.cwd or None,
                env=environment,
                stdin=subprocess.DEVNULL if self.stdin is None else self.stdin,
                stdout=self.output,
                stderr=self.output,
                start_new_session=True,
            )
        except OSError as error:
            self._clean()
            raise Problem(f"cannot start {command[0]}: {(error.strerror or str(error)).lower()}") from None
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._wait, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.process.poll() is None:
                self._interrupt(INTERRUPTED_S if kind is not None else ENDING_S)
        finally:
            tree.kill(self.process, self.mark)
            self._clean()

    def follow(
        self,
        on_progress: Callable[[Progress], None],
        cancelled: threading.Event,
        on_ready: Callable[[], None],
    ) -> Outcome:
        """Pass progress on until the target has ended; ``on_ready`` once all ranks have written.

        Raises Problem unless the script was measured, or ended well before it could be.
        """
        ready: set[int] = set()
        outcome = Outcome()
        deadline = time.monotonic() + self.request.timeout_s if self.request.timeout_s else None
        stage = "starting"
        while True:
            try:
                message = self.messages.get(timeout=0.1)
            except queue.Empty:
                message = {}
            if cancelled.is_set():
                raise Problem("cancelled", 130)
            if deadline is not None and not outcome.ready and time.monotonic() > deadline:
                raise Problem(self._timed_out(stage), 1)
            if message is None:
                break
            event = message.get("event")
            if event == "progress" and message["rank"] == 0:
                stage = message["stage"]
                on_progress(Progress(stage, message["done"], message["total"], message["message"]))
            elif event == "problem":
                raise Problem(message["message"], message["status"])
            elif event == "ended" and (message["rank"] == 0 or not message["clean"]):
                outcome.ended = message
            elif event == "ready":
                ready.add(message["rank"])
                if len(ready) == message["world"]:
                    outcome.ready = True
                    on_progress(Progress("ending", 0, None, "the script is ending"))
                    on_ready()
        if not outcome.ready and not outcome.clean:
            raise Problem(outcome.failure(self.name, self.process.returncode), 1)
        return outcome

    def _timed_out(self, stage: str) -> str:
        seconds = f"{self.request.timeout_s:g} s"
        if stage in ("starting", "waiting"):
            return f"{self.name} made no step within {seconds} (--timeout)"
        return f"{self.name} could not be measured within {seconds} (--timeout); it was at: {stage}"

    def _listen(self) -> None:
        rest = b""
        while True:
            data = os.read(self.pipe, 65536)
            if data == b"\0":
                self.messages.put(None)
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"\0":
                    self.messages.put(None)
                    return
                with contextlib.suppress(msgspec.MsgspecError):
                    self.messages.put(msgspec.json.decode(line))

    def _wait(self) -> None:
        self.process.wait()
        with contextlib.suppress(OSError):
            os.write(self.pipe, b"\0\n")  # after all that the target has written

    def _interrupt(self, patience: float) -> None:
        """Ctrl-C for the target, so that ``finally`` and ``atexit`` run; then wait."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)

    def _clean(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.pipe)
        shutil.rmtree(Path(self.control.pipe).parent, ignore_errors=True)


if sys.platform == "win32":  # pragma: no cover
    raise ImportError("Warpline starts scripts on Linux and macOS only")
