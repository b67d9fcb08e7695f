"""The watch ends with the server, whenever that is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.lsp.methods import watch


@pytest.mark.parametrize("turns", range(4))
def test_a_cancel_that_comes_with_a_change_ends_it(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    """``turns``: of the event loop between the change and the cancel."""

    async def nothing(self: watch.Watch) -> None:
        pass

    async def scene() -> bool:
        ls: Any = SimpleNamespace()
        watching = watch.Watch(ls)
        task = asyncio.ensure_future(watching.run())
        while not waiting(watching):
            await asyncio.sleep(0.001)
        watching._poked.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        ended = task.done()
        task.cancel()
        return ended

    def waiting(watching: watch.Watch) -> bool:
        return bool(watching._poked._waiters)  # type: ignore[attr-defined]  # asyncio tells nobody

    monkeypatch.setattr(watch.Watch, "_look", nothing)
    monkeypatch.setattr(watch.Watch, "_follow", lambda self: None)
    assert asyncio.run(asyncio.wait_for(scene(), 20))
