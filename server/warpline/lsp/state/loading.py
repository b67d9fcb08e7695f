"""Results that are being loaded for the first time: Helix and Emacs ask once, and never again."""

from __future__ import annotations

import asyncio

#: An answer is held back this long at most; a client that is slow to answer must not wait for itself.
LIMIT_S = 2.0


class Loading:
    """What is under way, by name. Nobody waits for the same thing again after the limit."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[None]] = {}

    def begin(self, name: str) -> None:
        """Requests wait from here on, until ``end`` with the same name."""
        if name not in self._under_way:
            self._under_way[name] = asyncio.get_running_loop().create_future()

    def end(self, name: str) -> None:
        """Let those go who wait; harmless when it is over already."""
        future = self._under_way.pop(name, None)
        if future is not None and not future.done():
            future.set_result(None)

    async def over(self) -> None:
        """Wait for what is under way now, up to the limit."""
        if self._under_way:
            names = tuple(self._under_way)
            await asyncio.wait(set(self._under_way.values()), timeout=LIMIT_S)
            for name in names:
                self.end(name)
