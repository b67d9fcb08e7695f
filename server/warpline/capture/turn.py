"""Gives several targets their turns. A target waits after it has imported torch, so that imports overlap and
timed windows do not. With slices it also waits between them, so that two live targets are timed in turn."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from warpline.capture import tree
from warpline.model.problem import Problem
from warpline.wire import stages
from warpline.wire.control import GO

#: Seconds within which a target stops after it has announced that. If not, it is stuck in the kernel.
STOPPING_S = 10.0
#: Seconds that a target waits for its turn if the time limits of the others are unknown.
PATIENCE_S = 600.0
LOOK_S = 0.1  # how often a wait checks whether it was cancelled
#: A shell that kills the target's process group when we end without telling it. If we were killed, stopped
#: processes of the target would stay stopped for ever.
GUARD = 'read end || kill -s KILL -- "-$0"'


class ResumeFifo:
    """A FIFO from which the target reads one byte each time it waits. Use as a context manager.

    ``patience_s``: the longest wait in seconds, on either side. ``reached`` is set when the target waits
    after importing torch, ``rested`` when it stops after a slice. If the server dies, the target dies too
    (``die_with_parent`` in the runner), and the guard kills what is stopped.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._folder = tempfile.mkdtemp(prefix="warpline-turn-")
        self.path = str(Path(self._folder, "turn"))
        os.mkfifo(self.path, 0o600)
        self._fifo = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self.group: int | None = None  # the process group that is stopped while it waits
        self._guard: subprocess.Popen[bytes] | None = None
        self.reached, self.rested = threading.Event(), threading.Event()

    def guard(self, group: int) -> None:
        """Start the shell that kills the process group ``group`` if we die while it is stopped."""
        self.group = group
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def waits(self, stage: str) -> None:
        """Note from the target's progress that it waits."""
        if stage == stages.HELD:
            self.reached.set()
        elif stage == stages.RESTING:
            self.rested.set()

    def come(self, word: bytes = GO) -> None:
        """Give the target its turn. ``word`` is ``GO``, or ``END`` after its last slice."""
        stopped = self.rested.is_set()
        self.rested.clear()
        os.write(self._fifo, word)
        if stopped and self.group is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.group, signal.SIGCONT)

    def rest(self, cancelled: threading.Event | None = None) -> None:
        """Wait until the target has stopped or ended. Raises Problem if it does neither within
        ``patience_s``, or with status 130 if ``cancelled`` is set."""
        late = time.monotonic() + self.patience_s
        while not self.rested.wait(LOOK_S):
            if cancelled is not None and cancelled.is_set():
                raise Problem("cancelled", 130)
            if time.monotonic() < late:
                continue
            raise Problem(f"a process did not finish its slice within {self.patience_s:g} s", 1)
        if self.group is not None and not _stopped(self.group):
            raise Problem("the system does not report that the process has stopped", 1)

    def __enter__(self) -> ResumeFifo:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guard is not None:
            try:
                self._guard.communicate(b"\n", timeout=STOPPING_S)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self._guard.kill()
        os.close(self._fifo)
        Path(self.path).unlink()
        Path(self._folder).rmdir()


def possible() -> bool:
    """Whether the system shows that a process has stopped (Linux with ``/proc``)."""
    return sys.platform.startswith("linux") and Path("/proc/self/stat").exists()


def _stopped(pid: int) -> bool:
    """Wait until the process has stopped. It announces that before it stops; a SIGCONT in between would be
    lost, and it would stay stopped."""
    late = time.monotonic() + STOPPING_S
    while time.monotonic() < late:
        try:
            state, _ = tree.state_and_session(Path(f"/proc/{pid}"))
        except OSError:
            return True  # it has ended
        if state in "TtZX":
            return True
        time.sleep(0.0002)
    return False
