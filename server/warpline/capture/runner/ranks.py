"""Ranks of one machine wait until all of them have written: one that ends early breaks the others' exchanges.

How long writing takes depends on the disk and on how much a rank recorded. So we wait for a rank while it
is active: its process uses the processor, or its folder grows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from ...wire.run import MANIFEST

if TYPE_CHECKING:
    from .control import Control

#: In a rank's folder from the end of its captured steps until it has written: its process, see ``_me``.
WRITING = ".writing"
SILENT_S = 60.0  # longest wait for a rank without activity, or that has not begun to write
GONE_S = 5.0  # the same if its process has ended
MOST_S = 600.0  # longest wait in total
POLL_S = 0.05

#: What changes while a rank writes: ticks of processor time, bytes in its folder.
Sign = tuple[int, int]


def writes(control: Control) -> None:
    """This rank begins to write."""
    if control.local_world > 1:
        try:
            os.makedirs(control.folder, exist_ok=True)
            with open(os.path.join(control.folder, WRITING), "w", encoding="utf-8") as file:
                file.write(_me())
        except OSError:
            pass  # then it is waited for as one that has not begun


def writes_no_more(control: Control) -> None:
    """Called by a rank that has written its run, or that goes on with more steps."""
    try:
        os.unlink(os.path.join(control.folder, WRITING))
    except OSError:
        pass


def wait_for_others(control: Control, say: Callable[[str], None]) -> None:
    """Wait until all ranks of this machine have written, or the missing ones are inactive for too long.

    ``say`` is called with a message that names the missing rank.
    """
    waiting = {rank: Waiting(control.folder_of(rank)) for rank in range(control.local_world)}
    until = time.monotonic() + MOST_S
    while True:
        waiting = {rank: one for rank, one in waiting.items() if one.worth_it()}
        if not waiting or time.monotonic() > until:
            return
        say("waiting for rank %d to write" % min(waiting))
        time.sleep(POLL_S)


class Waiting:
    """One rank that is waited for."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.sign: Sign = (0, 0)
        self.since = time.monotonic()  # that is when the sign last changed

    def worth_it(self) -> bool:
        """Whether the other rank may still write its run. False once it has, and once it showed no activity
        for ``SILENT_S`` seconds (``GONE_S`` where its process is gone)."""
        if os.path.exists(os.path.join(self.folder, MANIFEST)):
            return False
        now, process = time.monotonic(), _process(self.folder)
        sign = (_ticks(process), _size(self.folder))
        if sign != self.sign:
            self.sign, self.since = sign, now
        return now - self.since <= (GONE_S if process is not None and _gone(process) else SILENT_S)


def _me() -> str:
    """This process's ID and its PID namespace: each rank may be in a container of its own."""
    return "%d %s" % (os.getpid(), _namespace())


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _process(folder: str) -> Optional[int]:
    """The process that writes in ``folder``; None if there is none, or if it is in another namespace."""
    try:
        with open(os.path.join(folder, WRITING), encoding="utf-8") as file:
            number, _, namespace = file.read().partition(" ")
    except OSError:
        return None
    return int(number) if number.isdigit() and namespace == _namespace() else None


def _gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _ticks(process: Optional[int]) -> int:
    """Processor time of the process and of the system for it; 0 where it cannot be read (macOS)."""
    try:
        with open("/proc/%d/stat" % (process or 0), encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0


def _size(folder: str) -> int:
    """Bytes of the files in the folder."""
    try:
        with os.scandir(folder) as files:
            return sum(file.stat(follow_symlinks=False).st_size for file in files if not file.is_dir())
    except OSError:
        return 0
