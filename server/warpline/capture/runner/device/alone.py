"""One profile at a time on a GPU: two at once would each measure the other's work.

The lock is a Unix socket with an abstract name: no file is written, and the system frees it when the process
ends. Only Linux has such names; elsewhere, and where the GPU has no identity, nothing is locked.
"""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Callable

#: Seconds to wait for another profile. Most hold a GPU for less than ten.
MOST_S = 60.0
_POLL_S = 0.05


class Alone:
    """Holds one GPU. ``let_go`` is also needed in a forked child, which shares the socket."""

    def __init__(self) -> None:
        self._held: socket.socket | None = None

    def take(
        self, identity: str | None, most_s: float = MOST_S, on_wait: Callable[[], None] = lambda: None
    ) -> bool:
        """Wait until no other process holds the GPU, at most ``most_s`` seconds; ``on_wait`` is called if
        it is held. Does nothing if this process holds one already. False if another still holds it."""
        if self._held is not None or identity is None or sys.platform != "linux":
            return True
        try:
            lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:  # none is allowed, or too many files are open
            return True
        ends: float | None = None
        while True:
            try:
                lock.bind("\0warpline-measures-" + identity)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # a sandbox forbids it: waiting would not help
                    lock.close()
                    return True
                now = time.monotonic()
                if ends is None:
                    ends = now + most_s
                    on_wait()
                if now >= ends:
                    lock.close()
                    return False
                time.sleep(_POLL_S)
            else:
                self._held = lock
                return True

    def let_go(self) -> None:
        """Let the next one measure."""
        if self._held is not None:
            self._held.close()
            self._held = None
