"""The target process: started in its own session, followed through its pipe, ended with all its children."""

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

from warpline import runs
from warpline.capture import interpreter, signals, tree
from warpline.capture.clock import Clock
from warpline.capture.control import path_of
from warpline.capture.outcome import Outcome
from warpline.capture.pipe import Heard, hear
from warpline.capture.turn import ResumeFifo
from warpline.model.problem import Problem
from warpline.wire import stages
from warpline.wire.control import Control, Purpose
from warpline.wire.messages import Compiling, Ended, Failed, Looked, Pausing, Progress, Ready, Replaced
from warpline.wire.run import TRACE, Request

BOOT = Path(__file__).parent / "runner" / "boot.py"
ENDING_S = 20.0  # how long a script may take to end after it was asked to
INTERRUPTED_S = 5.0  # the same after Ctrl-C
SILENT_S = 15.0  # without progress where steps are awaited; more than ``lengths.TIMING_MOST_NS``
AGAIN_S = 1.0  # between two looks at a script that made no step yet and is silent
LISTENERS_S = 10.0  # how long our own threads may outlive the process that they listen to
#: Starts a launcher so that Linux kills it when we are killed (PR_SET_PDEATHSIG, SIGKILL).
TIED_TO_US = """\
import ctypes, os, sys
if sys.platform.startswith("linux"):
    ctypes.CDLL(None).prctl(1, 9)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"cannot start {sys.argv[1]}: {error.strerror}")
"""


class StillCompiling(Problem):
    """The script made no step in time because its model was still compiling."""


class Target:
    """Use as a context manager: on exit the whole process tree has ended, also after an exception."""

    def __init__(
        self,
        request: Request,
        control: Control,
        *,
        stdin: int | None,
        output: int,
        turn: ResumeFifo | None = None,
        interrupted_s: float = INTERRUPTED_S,
    ) -> None:
        """``interrupted_s``: seconds it may take to end by itself after Ctrl-C."""
        self.request = request
        self.control = control
        self.stdin = stdin
        self.output = output
        self.turn = turn
        self.interrupted_s = interrupted_s
        self.threads: list[threading.Thread] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.messages: queue.SimpleQueue[Heard | None] = queue.SimpleQueue()
        self.name = request.target if request.module else Path(request.target).name
        self.mark = f"{os.getpid()}-{Path(control.pipe).parent.name}"

    def __enter__(self) -> Target:
        # Opened for reading and writing: then it never reports its end, even if all ranks have closed it.
        self.pipe = os.open(self.control.pipe, os.O_RDWR | os.O_CLOEXEC)
        self.politely = signals.end_like_interrupt()
        self.politely.__enter__()
        try:
            with signals.held_back():
                self._start()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._listen, self._wait)]
        for thread in self.threads:
            thread.start()
        return self

    def _start(self) -> None:
        command = [*interpreter.started_by(self.request), str(BOOT), str(path_of(self.control))]
        if self.request.launcher:
            command = [sys.executable, "-c", TIED_TO_US, *command]
        try:
            self.process = subprocess.Popen(
                command,
                cwd=self.request.cwd or None,
                env={**os.environ, **self.request.environment, tree.MARK: self.mark},
                stdin=subprocess.DEVNULL if self.stdin is None else self.stdin,
                stdout=self.output,
                stderr=self.output,
                start_new_session=True,
            )
        except OSError as error:
            raise Problem(f"cannot start {command[0]}: {(error.strerror or str(error)).lower()}") from None
        if self.turn is not None and self.control.windows.sliced:
            self.turn.guard(self.process.pid)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.process is not None:
                try:
                    self._interrupt()
                finally:
                    tree.kill(self.process, self.mark)
            late = time.monotonic() + LISTENERS_S
            for thread in self.threads:
                thread.join(max(0.0, late - time.monotonic()))  # both end with the process
        finally:
            # While a thread still reads the pipe, its descriptor must not be reused.
            if not any(thread.is_alive() for thread in self.threads):
                os.close(self.pipe)
            shutil.rmtree(Path(self.control.pipe).parent, ignore_errors=True)
            self.politely.__exit__(None, None, None)

    def follow(  # noqa: C901  # one loop over pipe, output, deadline and cancel
        self,
        on_progress: Callable[[Progress], None],
        cancelled: threading.Event,
        on_ready: Callable[[], None],
        on_pause: Callable[[Path, int], None] | None = None,
    ) -> Outcome:
        """Pass progress on until the target has ended; call ``on_ready`` once all ranks have written.
        ``on_pause`` gets the trace, and what ``Pausing`` tells of it.

        Also returns ``ENDING_S`` after the last rank has written, if other ranks do not write, and at the
        request's timeout.

        Raises Problem if measuring failed, was cancelled or took too long. If the script ended before it was
        measured, with or without an error, nothing is raised: the outcome says so.
        """
        ready: set[int] = set()
        outcome = Outcome()
        problem: Problem | None = None
        clock = Clock(self.request.timeout_s, self.turn.patience_s if self.turn is not None else None)
        stage, heard_s = stages.STARTING, time.monotonic()
        while True:
            try:
                heard = self.messages.get(timeout=0.1)
            except queue.Empty:
                heard = Heard()
            if cancelled.is_set():
                raise Problem("cancelled", 130)
            late = clock.late
            done = problem or ready or outcome.ready or outcome.looked
            if late and not done and not self._written():
                raise self._timed_out(stage, outcome.compiling)
            if heard is None or late:
                break
            message = heard.message
            heard_s = self._still_heard(message is not None, stage, heard_s, outcome.compiling)
            if isinstance(message, Progress) and heard.rank == 0:
                before, stage = stage, message.stage
                clock.at(before, stage)
                if self.turn is not None:
                    self.turn.waits(stage)
                outcome.stepped = outcome.stepped or stage not in stages.BEFORE_STEPS
                on_progress(message)
            elif isinstance(message, Compiling) and heard.rank == 0:
                outcome.compiling = message.begun
                if outcome.compiling:
                    on_progress(Progress(stage, 0, None, "compiling"))
            elif isinstance(message, Pausing) and on_pause is not None:
                on_pause(Path(self.control.folder) / TRACE, message.written)
            elif isinstance(message, Failed):
                problem = problem or Problem(message.message, message.status)
                clock.end_within(ENDING_S)
            elif isinstance(message, Ended) and (heard.rank == 0 or not message.clean):
                outcome.ended = message
            elif isinstance(message, (Looked, Replaced)):
                outcome.hear(message)
            elif isinstance(message, Ready):
                ready.add(heard.rank)
                clock.end_within(ENDING_S)  # it has waited for the others: a missing rank will not write
                if len(ready) == message.world:
                    outcome.ready = True
                    clock.end_within(None if self.request.whole_run else ENDING_S)
                    on_ready()
        if problem is not None:
            raise problem
        return outcome

    def _still_heard(self, heard: bool, stage: str, before_s: float, compiling: bool) -> float:
        """When the target was last heard. Where that was long ago, the runner listens to all that may mark
        steps, or looks whether anything may. Not on ranks, which must keep in step. ``before_s``: when it was
        heard before."""
        now_s = time.monotonic()
        if not heard and now_s - before_s < SILENT_S:
            return before_s
        control = self.control
        alone = control.purpose is Purpose.PROFILE and not self.request.launcher
        awaited = stage in stages.STEPPING and control.windows.timed is None
        first = stage == stages.WAITING and control.windows.may_look and not compiling
        if not heard and alone and (awaited or first):
            assert self.process is not None
            self.process.send_signal(signal.SIGURG)
            return now_s - SILENT_S + AGAIN_S if first else now_s
        return now_s

    def failure(self, outcome: Outcome) -> Problem:
        """Why nothing was measured."""
        return Problem(outcome.failure(self.name, self.process.returncode if self.process else None), 1)

    def _written(self) -> bool:
        """Whether at least one rank of a launcher has written its data."""
        root = Path(self.control.folder)
        return bool(self.request.launcher) and any(map(runs.is_run, (root, *runs.rank_folders(root))))

    def _timed_out(self, stage: str, compiling: bool) -> Problem:
        if stage in stages.TURNS and self.turn is not None:
            waited = f"{self.turn.patience_s:g} s for its turn"
            return Problem(f"{self.name} waited {waited}", 1)
        seconds = f"{self.request.timeout_s:g} s"
        if compiling:
            return StillCompiling(f"{self.name} was still compiling after {seconds}", 1)
        if stage in stages.BEFORE_STEPS:
            return Problem(f"{self.name} made no step within {seconds} (--timeout)", 1)
        at = f"it was at: {stage}"
        return Problem(f"{self.name} could not be measured within {seconds} (--timeout); {at}", 1)

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
                if (heard := hear(line)) is not None:
                    self.messages.put(heard)

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait()
        with contextlib.suppress(OSError):
            os.write(self.pipe, b"\0\n")  # after all that the target has written

    def _interrupt(self) -> None:
        """Send SIGINT to a running target, so that ``finally`` and ``atexit`` run; then wait for its end."""
        if self.process is None or self.process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGINT)
            os.killpg(self.process.pid, signal.SIGCONT)  # it may be stopped between two slices
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(self.interrupted_s)


if sys.platform == "win32":  # pragma: no cover
    raise ImportError("Warpline runs scripts only on Linux and macOS")
