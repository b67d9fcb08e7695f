"""The script's output in the client's log, sent in batches, because a script may print faster than a client
reads."""

from __future__ import annotations

import asyncio

from warpline.lsp.server import Server

_PERIOD_S = 0.2
_LINES = 200  # at most in one period; what is more is counted


class Output:
    def __init__(self, ls: Server) -> None:
        self._ls = ls
        self._lines: list[str] = []
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def line(self, text: str) -> None:
        """Queue a line. Beyond ``_LINES`` in a batch, lines are counted and left out."""
        if len(self._lines) < _LINES:
            self._lines.append(text)
        else:
            self._left_out += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PERIOD_S, self.flush)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._left_out:
            self._lines.append(f"… and {self._left_out} more lines")
        if self._lines:
            self._ls.log("\n".join(self._lines))
        self._lines, self._left_out = [], 0
