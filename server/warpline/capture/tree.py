"""The processes of a target: those of its session, and those with its mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

KILLED_S = 2.0  # how long to wait for a process to end after SIGKILL
MARK = "WARPLINE_TARGET"  # environment variable that every process of the target inherits


def kill(root: subprocess.Popen[bytes], mark: str) -> None:
    """Kill ``root`` and all that it started; return when they have ended, or after ten attempts."""
    for _ in range(10):
        found = members(root.pid, mark)
        if root.poll() is None:
            found.add(root.pid)
        if not found:
            break
        with contextlib.suppress(OSError):
            os.killpg(root.pid, signal.SIGKILL)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        # A process stuck in the kernel does not end by SIGKILL; it is left to the system.
        with contextlib.suppress(subprocess.TimeoutExpired):
            root.wait(KILLED_S)


def kill_all_of(starter: int) -> None:
    """Send SIGKILL to all targets that the process ``starter`` started; do not wait for them."""
    mark = f"{MARK}={starter}-".encode()
    for entry in processes():
        with contextlib.suppress(OSError):
            marked = any(word.startswith(mark) for word in (entry / "environ").read_bytes().split(b"\0"))
            if marked and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)


def members(root: int, mark: str) -> set[int]:
    """PIDs of living processes in the session of ``root``, or with the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for entry in processes():
        with contextlib.suppress(OSError):
            state, session = state_and_session(entry)
            if state != "Z" and (session == root or wanted in (entry / "environ").read_bytes().split(b"\0")):
                found.add(int(entry.name))
    found.discard(os.getpid())
    return found


def processes() -> Iterator[Path]:
    """The folder of each process in ``/proc``; empty without ``/proc`` (macOS)."""
    if Path("/proc/self").exists():
        yield from (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())


def state_and_session(entry: Path) -> tuple[str, int]:
    """The state (a letter) and the session of the process with this folder in ``/proc``. OSError if it is
    gone."""
    fields = (entry / "stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[3])
