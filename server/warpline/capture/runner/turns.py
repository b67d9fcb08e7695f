"""Waits until the server gives this process its turn; see ``capture/turn.py``."""

from __future__ import annotations

import os
import select

from .pipe import Fifo


class Turns:
    def __init__(self, path: str, limit_s: float) -> None:
        """``path``: the FIFO; ``limit_s``: seconds to wait for each word (one byte)."""
        self.fifo = Fifo(path, os.O_RDONLY)
        self.limit_s = limit_s

    def next(self) -> tuple[bytes, str]:
        """``(word, "")``, or ``(b"", why)`` if none arrives in time."""
        fd = self.fifo.descriptor()
        ready, _, _ = select.select([fd], [], [], self.limit_s)
        if not ready:
            return b"", "waited for its turn, which did not come within %g s" % self.limit_s
        word = os.read(fd, 1)
        return word, "" if word else "waited for its turn, and the server is gone"
