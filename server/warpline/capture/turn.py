"""A target that waits for its turn: after its import of torch, so that imports of several overlap and their
timed windows do not; and between slices of its window, so that two are timed in turn while both are alive."""

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

#: A target that said that it stops has stopped by then, or is stuck in the kernel.
STOPPING_S = 10.0
#: How long a target waits for its turn if no limit of the others is known.
PATIENCE_S = 600.0
LOOK_S = 0.1  # how often a wait looks whether it was cancelled
#: What takes a target along should we be killed: SIGKILL would leave those that it started stopped for ever.
GUARD = 'read end || kill -s KILL -- "-$0"'


class ResumeFifo:
    """A FIFO from which the target reads one word for each time it waits. Use as a context manager.

    ``patience_s`` is the longest that one wait lasts, on either side. ``reached`` is set once it waits after
    its import, ``rested`` when it stands still. If the server dies, the target dies too
    (``die_with_parent`` in the runner), and so does everything that is stopped (its guard).
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self.patience_s = patience_s
        self._folder = tempfile.mkdtemp(prefix="warpline-turn-")
        self.path = str(Path(self._folder, "turn"))
        os.mkfifo(self.path, 0o600)
        self._fifo = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self.group: int | None = None  # that is stopped while it waits
        self._guard: subprocess.Popen[bytes] | None = None
        self.reached, self.rested = threading.Event(), threading.Event()

    def guard(self, group: int) -> None:
        """Between slices the whole process group stands still."""
        self.group = group
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(group)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def waits(self, stage: str) -> None:
        """What the target tells of its progress."""
        if stage == stages.HELD:
            self.reached.set()
        elif stage == stages.RESTING:
            self.rested.set()

    def come(self, word: bytes = GO) -> None:
        """It is the target's turn; ``END``: it has had its last slice."""
        stopped = self.rested.is_set()
        self.rested.clear()
        os.write(self._fifo, word)
        if stopped and self.group is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.group, signal.SIGCONT)

    def rest(self, cancelled: threading.Event | None = None) -> None:
        """Wait until the target stands still, or has ended. Raises Problem where it does not come to that, or
        with status 130 when ``cancelled`` is set."""
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
    """Whether the system tells a stopped process from one that is about to stop."""
    return sys.platform.startswith("linux") and Path("/proc/self/stat").exists()


def _stopped(pid: int) -> bool:
    """It says that it stops, and then stops: what lets it go on would be lost in between."""
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
