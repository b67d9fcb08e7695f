"""How the workers of `make gpu-test` share GPUs (tests/gpu/sharing.py); none is needed here."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.captures import record
from tests.distribution import scope
from tests.gpu import sharing
from tests.processes import ROOT

LINES = "tests/gpu/test_lines.py::test_a"


@pytest.mark.parametrize(
    ("test", "group"),
    [
        (f"{LINES}[fp32-bert]", "fp32-bert"),
        (f"{LINES}[fp32-bert-fixed]", "fp32-bert-fixed"),
        (f"{LINES}[fp32-bert-12-aten::gelu]", "fp32-bert"),
        ("tests/gpu/test_captured_graphs.py::test_a[cuda_graph_step]", "cuda_graph_step"),
        ("tests/gpu/test_ranks.py::test_a[cuda_graph]", "tests/gpu/test_ranks.py"),
        ("tests/gpu/test_gains.py::test_a[fp32-bert]", "tests/gpu/test_gains.py::test_a[fp32-bert]"),
        ("tests/gpu/test_probing.py::test_a", "tests/gpu/test_probing.py"),
    ],
)
def test_the_tests_of_a_script_stay_together(test: str, group: str) -> None:
    assert scope(test) == group


def test_every_test_of_scripts_names_its_script() -> None:
    words = ["-o", "addopts=-p no:cacheprovider --import-mode=importlib", "--collect-only", "-q"]
    command = [sys.executable, "-m", "pytest", *words, "tests/gpu"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    tests = [line for line in told.splitlines() if line.startswith("tests/gpu/")]
    found = {scope(test) for test in tests if Path(test.partition("::")[0]).stem in sharing.SCRIPTS}
    assert found == {*record.scripts(), *record.GRAPHS}
    stems = {Path(test.partition("::")[0]).stem for test in tests}
    assert stems >= {sharing.ALL, *sharing.ALONE, *sharing.SCRIPTS, *sharing.EACH}
    in_order = sorted(tests, key=sharing.order)
    assert [sharing.ALL in test for test in in_order[:10]] == [True] * 10
    assert sharing.ALONE[-1] in in_order[-1]
    others = ("tests/ranks/test_ranks.py::a", "tests/capture/test_alone.py::a", "tests/test_pipeline.py::a")
    assert [sharing.order(test) for test in others] == [1, 1, 1], "they keep their order"


@pytest.mark.parametrize(("gpus", "cores", "workers"), [(2, 32, 6), (1, 16, 3), (1, 2, 1), (0, 16, 1)])
def test_there_are_as_many_workers_as_gpus_and_cores_are_enough_for(
    gpus: int, cores: int, workers: int
) -> None:
    assert sharing.workers(gpus, cores) == workers


def test_the_user_says_which_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sharing.VISIBLE, "3,GPU-5")
    assert sharing.names() == ["3", "GPU-5"]


class Worker:
    """Waits for a turn in a thread of its own."""

    def __init__(self, folder: Path, number: int, how: str) -> None:
        self.turns, self.gpus = sharing.Turns(folder, ["0", "1"], number), list[str]()
        take: Callable[[], list[str]] = getattr(self.turns, how)
        self.thread = threading.Thread(target=lambda: self.gpus.extend(take()), daemon=True)
        self.thread.start()

    def got(self, within_s: float = 20.0) -> list[str]:
        self.thread.join(within_s)
        return self.gpus

    def waits(self) -> bool:
        return self.got(0.3) == []


def test_workers_share_their_own_gpu(tmp_path: Path) -> None:
    assert [Worker(tmp_path, number, "share").got() for number in range(4)] == [["0"], ["1"], ["0"], ["1"]]


def test_one_alone_takes_any_gpu_that_is_free_of_others(tmp_path: Path) -> None:
    first = Worker(tmp_path, 0, "alone")
    assert first.got() == ["0"]
    second = Worker(tmp_path, 2, "alone")
    assert second.got() == ["1"]
    third = Worker(tmp_path, 4, "alone")
    assert third.waits()
    second.turns.end()
    assert third.got() == ["1"]


def test_one_alone_waits_for_those_that_share_and_not_for_later_ones(tmp_path: Path) -> None:
    both = [Worker(tmp_path, number, "share") for number in (0, 1)]
    assert all(worker.got() for worker in both)
    alone = Worker(tmp_path, 2, "alone")
    assert alone.waits()
    later = Worker(tmp_path, 4, "share")
    assert later.waits()
    both[0].turns.end()
    assert alone.got() == ["0"]
    assert later.waits()
    alone.turns.end()
    assert later.got() == ["0"]


def test_ranks_have_all_of_them(tmp_path: Path) -> None:
    one = Worker(tmp_path, 1, "share")
    one.got()
    ranks = Worker(tmp_path, 0, "all")
    assert ranks.waits()
    one.turns.end()
    assert ranks.got() == ["0", "1"]
    others = [Worker(tmp_path, 2, "share"), Worker(tmp_path, 3, "alone")]
    assert all(worker.waits() for worker in others)
    ranks.turns.end()
    assert others[0].got() == ["0"]
    assert others[1].got() == ["1"]


def test_a_group_keeps_its_turn_until_its_last_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sharing.VISIBLE, "0,1")
    plugin = sharing.Sharing(sharing.Turns(tmp_path, ["0", "1"], 1))
    names = ("test_lines.py::a[waits]", "test_lines.py::b[waits]", "test_ranks.py::a", "test_alone.py::a")
    items = [SimpleNamespace(path=ROOT / "tests/gpu/x.py", nodeid=f"tests/gpu/{name}") for name in names]
    seen = []
    for item, following in zip(items, [*items[1:], None], strict=True):
        hook = plugin.pytest_runtest_protocol(item, following)  # type: ignore[arg-type]
        next(hook)
        seen.append(sharing.names())
        with pytest.raises(StopIteration):
            next(hook)
        with (tmp_path / "use-1").open("w") as file:
            if item is items[0]:  # the second test of the script is still to come
                with pytest.raises(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert seen == [["1"], ["1"], ["0", "1"], ["1"]]


def test_a_profile_without_trials_asks_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(returncode=1, stdout="")

    monkeypatch.setattr(record.subprocess, "run", run)
    for trials in (True, False):
        assert record.profiled("waits", tmp_path, None, trials=trials) is None
    assert ["--probe" in words for words in asked] == [False, True]
    assert asked[1][asked[1].index("--probe") + 1] == "0"
