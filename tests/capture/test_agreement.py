"""Ranks that decide together, as threads over one folder."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

from warpline.capture.runner.agreement import FOLDER, Agreement


def rank(folder: Path, number: int, count: int = 2, run: str = "first") -> Agreement:
    pipe = str(folder / run / "progress")
    control = SimpleNamespace(root=str(folder), pipe=pipe, local_rank=number, local_world=count)
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
