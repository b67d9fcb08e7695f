"""Sends messages to the server: one JSON object per line. Never blocks, never raises."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict

from ...wire.messages import EVENTS, Message, Progress

_EVENTS = {kind: event for event, kind in EVENTS.items()}


class Pipe:
    """Messages are those of ``wire/messages.py``."""

    PATIENCE_S = 0.2  # least time between two progress messages of one stage: a write costs 10 us

    def __init__(self, path: str, rank: int) -> None:
        self.rank = rank
        self.stage: str | None = None
        self.told = 0.0
        self.fd: int | None = None  # None: the server is gone, and this process will be ended
        try:
            self.fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            pass

    def send(self, message: Message) -> None:
        """Write one message. It is no error if the reader is gone."""
        if self.fd is None:
            return
        fields = {"event": _EVENTS[type(message)], "rank": self.rank, **asdict(message)}
        try:
            os.write(self.fd, (json.dumps(fields) + "\n").encode("utf-8"))
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
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
