"""How far a profile is: work-done progress where the client shows it, and warpline/progress always."""

from __future__ import annotations

import asyncio
import contextlib
import uuid

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from warpline.lsp.server import Server

#: Where the stages lie on the way from nothing to done, in percent.
_PERCENT = {
    "starting": (0, 10),
    "waiting": (10, 20),
    "warmup": (20, 35),
    "timing": (35, 55),
    "capturing": (55, 75),
    "writing": (75, 85),
    "ending": (85, 88),
    "reading": (88, 100),
    "measuring": (0, 100),
}


class Progress:
    """``warpline/progress``, and one bar: of the client's own ``token``, else of one that is made where
    ``bar`` says so."""

    def __init__(self, ls: Server, uri: str, token: int | str | None, title: str, bar: bool) -> None:
        self._ls, self._uri, self._title = ls, uri, title
        self._token, self._bar = token, bar
        self._open = False
        self._percent = 0

    async def begin(self) -> int | str | None:
        """Open the bar; its token, or None where the client shows none."""
        if self._token is None and self._bar and self._ls.can("window.work_done_progress"):
            token = str(uuid.uuid4())
            with contextlib.suppress(asyncio.TimeoutError, JsonRpcException):
                await asyncio.wait_for(self._ls.work_done_progress.create_async(token), 5)
                self._token = token
        if self._token is not None:
            self._ls.work_done_progress.begin(
                self._token,
                types.WorkDoneProgressBegin(title=self._title, cancellable=True, percentage=0),
            )
            self._open = True
        self.report("starting", 0, None, "starting")
        return self._token

    def report(self, stage: str, done: int, total: int | None, message: str) -> None:
        """Show how far a stage is. ``total`` is None where that is unknown."""
        low, high = _PERCENT.get(stage, (self._percent, self._percent))
        part = min(done / total, 1.0) if total else 0.0
        # Never backwards: bars that do look broken.
        self._percent = max(self._percent, int(low + (high - low) * part))
        self._ls.protocol.notify(
            "warpline/progress",
            {
                "uri": self._uri,
                "stage": stage,
                "done": done,
                "total": total,
                "message": message,
                "percent": self._percent,
            },
        )
        if not self._open or self._token is None:
            return
        self._ls.work_done_progress.report(
            self._token,
            types.WorkDoneProgressReport(message=message, percentage=self._percent, cancellable=True),
        )

    def end(self, message: str) -> None:
        """Close the progress with a last message. Calls after the first do nothing."""
        if self._open and self._token is not None:
            self._open = False
            self._ls.work_done_progress.end(self._token, types.WorkDoneProgressEnd(message=message))
            self._ls.work_done_progress.tokens.pop(self._token, None)
