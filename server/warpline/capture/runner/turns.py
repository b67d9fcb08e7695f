"""Waits until the server gives this process its turn; see ``capture/turn.py``."""

from __future__ import annotations

import os
import select


class Turns:
    def __init__(self, path: str, limit_s: float) -> None:
        """``path``: the FIFO; ``limit_s``: seconds to wait for each word (one byte)."""
        self.path = path
        self.limit_s = limit_s
        self.fd: int | None = None

    def next(self) -> tuple[bytes, str]:
        """``(word, "")``, or ``(b"", why)`` if none arrives in time."""
        if self.fd is None:
            # Not blocking: a FIFO without a writer must not block this process for ever.
            self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        ready, _, _ = select.select([self.fd], [], [], self.limit_s)
        if not ready:
            return b"", "waited for its turn, which did not come within %g s" % self.limit_s
        word = os.read(self.fd, 1)
        return word, "" if word else "waited for its turn, and the server is gone"
