"""A target that waits for its turn after its import of torch, so that imports of several overlap and
their timed windows do not."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from pathlib import Path
from types import TracebackType


class Turn:
    """A lock that the server holds and the target waits for. Use as a context manager.

    ``reached`` is set once the target waits. A server that dies lets go of the lock, and the target
    goes with it (see ``die_with_parent`` in the runner).
    """

    def __init__(self) -> None:
        self._handle, self.path = tempfile.mkstemp(prefix="warpline-turn-")
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.reached = threading.Event()

    def come(self) -> None:
        """It is the target's turn."""
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)
        Path(self.path).unlink()
