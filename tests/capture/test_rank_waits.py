"""How long ranks that have written wait for those that have not: by a clock that the tests turn."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from warpline.capture.runner import ranks


@dataclass
class Ranks:
    """What ``wait_for_others`` asks of a ``Control``, and what is written while it waits."""

    root: Path
    local_world: int = 2
    own: int = 0
    now: float = 0.0
    said: list[str] = field(default_factory=list)

    @property
    def folder(self) -> str:
        return self.folder_of(self.own)

    def folder_of(self, rank: int) -> str:
        return str(self.root if rank == 0 else self.root / "ranks" / str(rank))

    def writes(self, rank: int, process: int) -> Path:
        folder = Path(self.folder_of(rank))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ranks.WRITING).write_text(f"{process} {ranks._namespace()}")
        return folder

    def has_written(self, rank: int) -> None:
        folder = Path(self.folder_of(rank))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text("{}")


@pytest.fixture
def wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ranks]:
    """``wait(of, meanwhile)``: rank 0 has written and waits; ``meanwhile`` runs a second after another."""
    of = Ranks(tmp_path)
    of.has_written(0)

    def waited(before: Callable[[Ranks], object], meanwhile: Callable[[Ranks], object]) -> Ranks:
        before(of)

        def sleep(_: float) -> None:
            of.now += 1
            meanwhile(of)

        monkeypatch.setattr(ranks.time, "monotonic", lambda: of.now)
        monkeypatch.setattr(ranks.time, "sleep", sleep)
        ranks.wait_for_others(of, of.said.append)  # type: ignore[arg-type]
        return of

    return waited


def nothing(of: Ranks) -> None:
    pass


@pytest.fixture
def ended() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(60)
    return child.pid


def test_a_rank_whose_folder_grows_is_waited_for(
    wait: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For 300 seconds, by a process that uses no processor time: it waits for its disk."""
    monkeypatch.setattr(ranks, "_ticks", lambda process: 7)

    def grows(of: Ranks) -> None:
        with (Path(of.folder_of(1)) / "trace.json").open("a") as file:
            file.write("x")
        if of.now == 300:
            of.has_written(1)

    of = wait(lambda of: of.writes(1, os.getppid()), grows)
    assert of.now == 300
    assert set(of.said) == {"waiting for rank 1 to write"}


def test_a_rank_that_computes_is_waited_for(
    wait: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_work(of: Ranks) -> None:
        monkeypatch.setattr(ranks, "_ticks", lambda process: int(of.now) if process else 0)
        if of.now == 200:
            of.has_written(1)

    assert wait(lambda of: of.writes(1, os.getpid()), at_work).now == 200


def test_a_rank_that_does_nothing_is_waited_for_a_minute(
    wait: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "_ticks", lambda process: 7)
    assert ranks.SILENT_S < wait(lambda of: of.writes(1, os.getpid()), nothing).now < ranks.SILENT_S + 3


def test_a_rank_that_has_not_begun_is_waited_for_a_minute(wait: Callable[..., Ranks]) -> None:
    assert ranks.SILENT_S < wait(nothing, nothing).now < ranks.SILENT_S + 3


def test_a_rank_whose_process_is_gone_is_not_waited_for(wait: Callable[..., Ranks], ended: int) -> None:
    assert ranks.GONE_S < wait(lambda of: of.writes(1, ended), nothing).now < ranks.GONE_S + 3


def test_a_process_of_another_container_is_not_taken_for_gone(wait: Callable[..., Ranks], ended: int) -> None:
    def elsewhere(of: Ranks) -> None:
        (of.writes(1, ended) / ranks.WRITING).write_text(f"{ended} pid:[1]")

    assert wait(elsewhere, nothing).now > ranks.SILENT_S


def test_nothing_is_waited_for_without_end(
    wait: Callable[..., Ranks], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(of: Ranks) -> None:
        monkeypatch.setattr(ranks, "_ticks", lambda process: int(of.now))

    assert ranks.MOST_S < wait(lambda of: of.writes(1, os.getpid()), busy).now < ranks.MOST_S + 3


def test_a_rank_says_that_it_writes(tmp_path: Path) -> None:
    of = Ranks(tmp_path, own=1)
    ranks.writes(of)  # type: ignore[arg-type]
    assert ranks._process(of.folder) == os.getpid()
    assert ranks._ticks(os.getpid()) > 0 or sys.platform != "linux"
    ranks.writes_no_more(of)  # type: ignore[arg-type]
    assert ranks._process(of.folder) is None
