"""The FIFOs between this process and the server."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict

from ...wire.messages import EVENTS, Message, Progress

_EVENTS = {kind: event for event, kind in EVENTS.items()}


class Fifo:
    """A FIFO that is opened again once the script has closed it, as ``os.closerange`` does."""

    def __init__(self, path: str, flags: int) -> None:
        # Not blocking: without the other end, opening or writing must not block this process for ever.
        self.path, self.flags = path, flags | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
        self._fd: int | None = None
        self._as_opened: os.stat_result | None = None

    def descriptor(self) -> int:
        """An open descriptor of it. Raises OSError where it is gone."""
        if self._fd is None or not self._is_ours():
            self._fd = os.open(self.path, self.flags)
            self._as_opened = os.fstat(self._fd)
        return self._fd

    def close(self) -> None:
        """Close it, unless the script did."""
        if self._fd is not None and self._is_ours():
            os.close(self._fd)
        self._fd = None

    def _is_ours(self) -> bool:
        """Whether the descriptor is still open, and no file of the script's got its number."""
        assert self._fd is not None and self._as_opened is not None
        try:
            return os.path.samestat(os.fstat(self._fd), self._as_opened)
        except OSError:
            return False


class Pipe:
    """Sends messages, those of ``wire/messages.py``: one JSON object a line. Never blocks, never raises."""

    PATIENCE_S = 0.2  # least time between two progress messages of one stage: a write costs 10 us

    def __init__(self, path: str, rank: int) -> None:
        self.rank = rank
        self.stage: str | None = None
        self.told = 0.0
        self.fifo: Fifo | None = Fifo(path, os.O_WRONLY)  # None: the server is gone, or this is a fork
        try:
            self.fifo.descriptor()
        except OSError:  # this process will be ended
            self.fifo = None

    def send(self, message: Message) -> None:
        """Write one message. It is no error if the reader is gone."""
        if self.fifo is None:
            return
        fields = {"event": _EVENTS[type(message)], "rank": self.rank, **asdict(message)}
        try:
            os.write(self.fifo.descriptor(), (json.dumps(fields) + "\n").encode("utf-8"))
        except OSError:
            pass

    def progress(self, stage: str, done: int, total: int | None, message: str) -> None:
        """Report progress: at once for a new stage, else at most every ``PATIENCE_S`` seconds."""
        now = time.monotonic()
        if stage == self.stage and now - self.told < self.PATIENCE_S:
            return
        self.stage, self.told = stage, now
        self.send(Progress(stage, done, total, message))

    def close(self) -> None:
        """Close the pipe."""
        if self.fifo is not None:
            self.fifo.close()
            self.fifo = None
