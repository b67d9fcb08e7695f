"""Ranks that decide together, as threads over one folder."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpline.capture.runner import agreement
from warpline.capture.runner.agreement import FOLDER, Agreement


def rank(folder: Path, number: int, count: int = 2, run: str = "first") -> Agreement:
    pipe = str(folder / run / "progress")
    control = SimpleNamespace(
        root=str(folder), pipe=pipe, rank=number, world=count, local_rank=number, local_world=count
    )
    return Agreement(control)  # type: ignore[arg-type]


def asked(ranks: list[Agreement], answers: list[int], about: str = "a") -> list[list[int]]:
    """What each hears when all ask at about the same time."""
    heard: list[list[int]] = [[] for _ in ranks]

    def ask(at: int) -> None:
        time.sleep(0.02 * at)
        heard[at] = sorted(ranks[at].of(about, answers[at], 30))

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return heard


def test_each_hears_all(tmp_path: Path) -> None:
    ranks = [rank(tmp_path, number, 3) for number in range(3)]
    assert asked(ranks, [5, 2, 5]) == [[2, 5, 5]] * 3
    assert asked(ranks, [0, 1, 0]) == [[0, 0, 1]] * 3, "an earlier answer is no answer to a later question"
    assert asked(ranks, [3, 4, 5], "b") == [[3, 4, 5]] * 3
    ranks[0].forget()
    assert not (tmp_path / FOLDER).exists()


def test_one_that_does_not_answer_is_waited_for_once(tmp_path: Path) -> None:
    alone = rank(tmp_path, 0)
    begin = time.monotonic()
    assert alone.of("a", 4, 0.3) == [4]
    assert time.monotonic() - begin >= 0.3
    assert alone.of("a", 3, 1000) == [3]


def test_answers_of_an_earlier_run_are_not_read(tmp_path: Path) -> None:
    assert asked([rank(tmp_path, number) for number in range(2)], [5, 2]) == [[2, 5]] * 2
    assert rank(tmp_path, 0, run="second").of("a", 7, 0.1) == [7]


def test_a_script_without_ranks_asks_nobody(tmp_path: Path) -> None:
    assert rank(tmp_path, 0, 1).of("a", 7) == [7]
    assert not (tmp_path / FOLDER).exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert rank(tmp_path / "file", 0).of("a", 2) == [2]


class Store:
    """As torch's stores are: ``get`` of a key that is not there would block."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {}
        self.gone = False

    def set(self, key: str, value: str) -> None:
        self.keys[key] = value.encode()

    def check(self, keys: list[str]) -> bool:
        if self.gone:
            raise RuntimeError("Connection reset by peer")
        return set(keys) <= set(self.keys)

    def get(self, key: str) -> bytes:
        return self.keys[key]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store()
    monkeypatch.setattr(agreement, "default_store", lambda: found)
    return found


def on_machine(folder: Path, machine: int, local: int, machines: int = 2) -> Agreement:
    """Rank ``local`` of two on that machine, which has a folder of its own."""
    control = SimpleNamespace(
        root=str(folder / str(machine)), pipe="", rank=2 * machine + local, world=2 * machines,
        local_rank=local, local_world=2,
    )  # fmt: skip
    return Agreement(control)  # type: ignore[arg-type]


def test_ranks_of_several_machines_ask_by_the_scripts_store(tmp_path: Path, store: Store) -> None:
    ranks = [on_machine(tmp_path, machine, local) for machine in (0, 1) for local in (0, 1)]
    assert asked(ranks, [0, 0, 0, 1]) == [[0, 0, 0, 1]] * 4
    assert asked(ranks, [9, 8, 7, 6], "b") == [[6, 7, 8, 9]] * 4
    assert not list(tmp_path.iterdir())


def test_a_machine_that_is_not_measured_is_waited_for_once(tmp_path: Path, store: Store) -> None:
    ranks = [on_machine(tmp_path, 0, local) for local in (0, 1)]
    assert sorted(ranks[1].of("a", 4, 0.1)) == [4], "nobody has answered yet"
    assert sorted(ranks[0].of("a", 3, 0.2)) == [3, 4]
    assert ranks[0].silent == {2, 3}
    begin = time.monotonic()
    ranks[1].silent.clear()
    ranks[1].of("b", 1, 0.0)
    assert sorted(ranks[0].of("b", 2, 1000)) == [1, 2]
    assert time.monotonic() - begin < 100


def test_a_store_that_goes_with_its_machine_is_no_error(tmp_path: Path, store: Store) -> None:
    rank = on_machine(tmp_path, 0, 0)
    store.gone = True
    assert rank.of("a", 4, 1000) == [4]
    rank.wait_for_other_machines(1000)
    rank.forget()


def test_several_machines_without_a_process_group_ask_within_each(tmp_path: Path) -> None:
    """Horovod, or torch's own before the script has joined it."""
    assert agreement.default_store() is None
    ranks = [on_machine(tmp_path, 0, local) for local in (0, 1)]
    assert asked(ranks, [5, 2]) == [[2, 5]] * 2
