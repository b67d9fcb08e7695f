"""The last window: nothing is recorded, and py-spy, in a process of its own, asks which line runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
from collections import Counter
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any

from ....wire.samples import LEAST_NS, MOST_NS, RATE, py_spy, stacks
from ....wire.stages import CAPTURING
from .stages import Stage

if TYPE_CHECKING:
    from ..lines.userfiles import UserFiles
    from ..session import Session

START_S, END_S = 5.0, 10.0  # how long it may take to start, and to write what it saw
PR_SET_PTRACER = 0x59616D61
NOT_SAMPLED = "times of lines of plain Python are estimates"
LONGEST = 3.0  # times the window: then the script does something else than its steps
AFTER = 0.2  # of the time sampled may lie after the last step's end
OTHERS = 0.05  # and in what only steps of another class did


class Sampler:
    """py-spy at work on this process. Raises OSError when it cannot be started or may not look."""

    def __init__(self, program: str, path: str) -> None:
        self.path = path
        self.thread = threading.get_native_id()
        command = py_spy(program, os.getpid(), RATE, path)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        _may_look(self.process.pid)
        try:
            self._await_start()
        except OSError:
            self.stop()
            raise

    def _await_start(self) -> None:
        said, until = b"", monotonic() + START_S
        stdout = self.output.fileno()
        while b"Sampling process" not in said:
            ready, _, _ = select.select([stdout], [], [], max(0.0, until - monotonic()))
            heard = os.read(stdout, 4096) if ready else b""
            if not heard:
                reason = said.decode(errors="replace").strip().splitlines()
                raise OSError(reason[-1] if reason else "it did not start in time")
            said += heard

    def stop(self) -> None:
        """End it, whatever it is doing."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                with contextlib.suppress(
                    subprocess.TimeoutExpired
                ):  # stuck in the kernel: left to the system
                    self.process.wait(END_S)
        self.output.close()
        _may_look(0)

    def found(self, user_files: UserFiles) -> dict[str, Any]:
        """``Samples``, as a dict: the innermost line of the user's in each stack of the driving thread."""
        lines: Counter[tuple[str, int]] = Counter()
        total = 0
        mine = "thread (%d): " % self.thread
        with open(self.path, encoding="utf-8", errors="replace") as file:
            for stack, places, count in stacks(file):
                if not stack.startswith(mine):
                    continue
                total += count
                for file_name, line in places:
                    path = user_files[file_name]
                    if path is not None:
                        lines[path, line] += count
                        break
        os.unlink(self.path)
        return {"total": total, "lines": [(file, line, count) for (file, line), count in lines.items()]}


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
            os.makedirs(session.control.folder, exist_ok=True)
            path = os.path.join(session.control.folder, "samples.raw")
            self.sampler = Sampler(session.windows.sampler, path)
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


def _may_look(pid: int) -> None:
    """Linux's Yama lets a process look into those that it started only: we are the other way round."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (AttributeError, OSError):
        pass
