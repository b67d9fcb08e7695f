"""Starts and ends the process that samples this one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import threading
from collections.abc import Sequence
from time import monotonic

START_S, END_S = 5.0, 10.0  # how long it may take to start, and to write its samples
PR_SET_PTRACER = 0x59616D61


class Child:
    """The sampler's process. Create it on the thread to sample. ``output``: what it wrote after its start."""

    #: The signal that ends it; None: a line of input. The end of its input would not do: a process that the
    #: script forks meanwhile, such as a loader's worker, holds the other end open.
    end_by: signal.Signals | None = None
    all_threads = False  # those that make the steps are sampled, not only the one that began
    note = ""  # for the user, once the samples are read

    def __init__(self, command: Sequence[str]) -> None:
        self.thread = threading.get_native_id()
        self.output = b""
        self.steps: list[int] = []  # boundaries of the sampled steps, in ns of the monotonic clock
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        _may_look(self.process.pid)

    def begin(self, words: bytes, answer: bytes, within_s: float) -> None:
        """Send ``words`` and wait for ``answer``. Raises OSError with the sampler's reason if it fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(words)
            self.process.stdin.flush()
            said, until = b"", monotonic() + within_s
            stdout = self.process.stdout.fileno()
            poll = select.poll()  # select.select fails above descriptor 1023, and scripts open many files
            poll.register(stdout, select.POLLIN)
            while answer not in said:
                ready = poll.poll(max(0.0, until - monotonic()) * 1000)
                heard = os.read(stdout, 4096) if ready else b""
                if not heard:
                    reason = said.decode(errors="replace").strip().splitlines()
                    raise OSError(reason[-1] if reason else "it did not start in time")
                said += heard
        except OSError:
            self.stop()
            raise

    def go(self) -> None:
        """Tell the sampler that its samples count from now on."""

    def made_here(self) -> None:
        """The calling thread made a step."""

    def stop(self) -> None:
        """End the sampler, in any state."""
        if self.process.poll() is None and self.end_by is not None:
            self.process.send_signal(self.end_by)
        with contextlib.suppress(OSError, ValueError):  # ValueError: it was stopped before
            try:
                self.output, _ = self.process.communicate(b"\n\n", timeout=END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                with contextlib.suppress(
                    subprocess.TimeoutExpired
                ):  # stuck in the kernel: left to the system
                    self.process.wait(END_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        _may_look(0)


def _may_look(pid: int) -> None:
    """Let process ``pid``, our child, read this process. By default Linux's Yama only allows the reverse."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (AttributeError, OSError):
        pass
