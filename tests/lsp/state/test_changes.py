"""Changes reach the client once each, and none is lost on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from warpline.lsp.state.changes import Changes
from warpline.lsp.state.documents import Documents
from warpline.lsp.state.folders import Folders

FIRST, SECOND = Path("/first"), Path("/second")


class Told:
    def __init__(self, changes: Changes) -> None:
        self.all: list[object] = []
        changes.subscribe(self)

    def results_changed(self, folder: Path) -> None:
        self.all.append(folder)

    def shown_changed(self) -> None:
        self.all.append("shown")

    def running_changed(self) -> None:
        self.all.append("running")


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def told(changes: Changes) -> Told:
    return Told(changes)


def test_each_change_is_told_at_once(changes: Changes, told: Told) -> None:
    changes.results(FIRST)
    changes.shown()
    changes.running()
    assert told.all == [FIRST, "shown", "shown", "running"]


def test_changes_together_are_told_once_at_the_end_also_after_a_failure(changes: Changes, told: Told) -> None:
    with pytest.raises(OSError), changes.together():
        for folder in (FIRST, SECOND, FIRST):
            with changes.together():
                changes.results(folder)
        changes.shown()
        assert told.all == []
        raise OSError
    assert told.all == [FIRST, SECOND, "shown"]
    with changes.together():
        pass
    assert len(told.all) == 3


def test_what_a_task_changes_after_its_starter_has_told_is_not_lost(changes: Changes, told: Told) -> None:
    async def look(begun: asyncio.Event, goes_on: asyncio.Event) -> None:
        with changes.together():
            changes.results(FIRST)
            begun.set()
            await goes_on.wait()
            changes.results(SECOND)

    async def run() -> None:
        begun, goes_on = asyncio.Event(), asyncio.Event()
        with changes.together():
            looked = asyncio.ensure_future(look(begun, goes_on))
            await begun.wait()
        assert told.all == [FIRST, "shown"]
        goes_on.set()
        await looked

    asyncio.run(run())
    assert told.all == [FIRST, "shown", SECOND, "shown"]


def test_another_task_is_not_held_up(changes: Changes, told: Told) -> None:
    async def run() -> None:
        begun, ends = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            with changes.together():
                begun.set()
                await ends.wait()

        waiting = asyncio.ensure_future(waits())
        await begun.wait()
        changes.shown()
        assert told.all == ["shown"]
        ends.set()
        await waiting

    asyncio.run(run())
    assert told.all == ["shown"]


def test_results_of_a_folder_that_is_removed_are_no_longer_shown(tmp_path: Path) -> None:
    folders = Folders(Documents())
    told = Told(folders.changes)
    folders.add(tmp_path)
    folders.remove(tmp_path)
    folders.remove(tmp_path)
    assert told.all == ["shown"]
