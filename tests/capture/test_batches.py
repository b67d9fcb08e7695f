"""What the steps wait for each loader: counted with a clock of our own, and in a real script whose workers
start again in each epoch."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture.launching import Captured, request, write
from warpline.capture.runner.lines.userfiles import UserFiles
from warpline.capture.runner.waits import batches
from warpline.capture.runner.waits.batches import Batches
from warpline.wire.sites import Loader, facts_of

pytest.importorskip("torch")
import torch
from torch.utils.data import DataLoader

LOADER = DataLoader(range(8), batch_size=2)  # type: ignore[arg-type]


def _noted(entry: Any, frame: Any) -> None:
    entry[4].add(frame.f_lineno)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Batches, dict[str, Any]]]:
    """Each call that is timed takes a millisecond, a quarter of it on a processor, and two other threads take
    as much."""
    clock = itertools.count(step=1_000_000)
    monkeypatch.setattr(batches, "perf_counter_ns", lambda: next(clock))
    work = itertools.count(step=250_000)
    monkeypatch.setattr(batches, "thread_time_ns", lambda: next(work))
    whole = itertools.count(step=750_000)
    monkeypatch.setattr(batches, "process_time_ns", lambda: next(whole))
    facts: dict[str, Any] = {}
    entry = ("loader", ("train.py", 1, ""), None, facts, set(), None)
    files = UserFiles([str(Path(__file__).parent)], [])
    sites: Any = SimpleNamespace(by_id={id(LOADER): entry}, user_files=files, used=_noted)
    signals: Any = SimpleNamespace(thread=get_ident())
    counting = Batches(sites, signals)
    counting.install()
    yield counting, facts
    counting.remove()


def test_where_the_first_batch_is_asked_for_is_a_use(counted: Any) -> None:
    """Lightning makes the iterator where the user asks it for the number of steps."""
    counting, _ = counted
    made = iter(LOADER)
    uses = counting.sites.by_id[id(LOADER)][4]
    assert not uses
    next(made)
    asked = sys._getframe().f_lineno - 1
    assert uses == {asked}
    next(made)
    assert uses == {asked}


def test_an_epoch_is_its_iterator_its_batches_and_the_one_that_is_not_there(counted: Any) -> None:
    counting, facts = counted
    assert len(list(LOADER)) == 4
    counting.start()
    assert len(list(LOADER)) == 4
    counting.stop(4)
    list(LOADER)
    counting.tell(first=True)
    assert facts == {
        "wait_ms": 6 / 4,
        "starts_timed": 1,
        "in_main_ms": 1.0,
        "in_main_busy": 0.25,
        "in_main_beside": 2.0,
        "start_ms": 3.0,
        "after_first_ms": 1.0,
        "after_others_ms": 1.0,
        "batches_seen": 4,
        "batch_type": "Tensor",
    }


def test_steps_after_first_batches_are_timed_apart(counted: Any) -> None:
    counting, facts = counted
    list(LOADER)
    counting.start()
    for _ in range(3):
        for at, _batch in enumerate(LOADER):
            for _ in range((6, 2, 2, 3)[at]):  # each look at this clock takes a millisecond
                batches.perf_counter_ns()
    counting.stop(12)
    counting.tell(first=True)
    assert (facts["after_first_ms"], facts["after_others_ms"]) == (7.0, 3.0)


def test_of_epochs_with_one_batch_none_is_another(counted: Any) -> None:
    counting, facts = counted
    next(iter(LOADER))
    next(iter(LOADER))
    counting.tell(first=True)
    assert "after_first_ms" not in facts


def test_the_only_start_is_not_told_where_it_was_slow_because_of_us(counted: Any) -> None:
    counting, facts = counted
    next(iter(LOADER))
    counting.tell(first=False)
    assert "start_ms" not in facts
    counting.tell(first=True)
    assert facts["start_ms"] == 2.0


def test_a_loader_with_an_iterator_of_its_own_works_as_before(counted: Any) -> None:
    class Own(DataLoader[int]):
        def _get_iterator(self) -> Any:
            return iter([1, 2])

    counting, _ = counted
    loader = Own(range(2))  # type: ignore[arg-type]
    counting.sites.by_id[id(loader)] = counting.sites.by_id[id(LOADER)]
    assert list(loader) == [1, 2]


def test_batches_of_another_thread_are_nothing_that_steps_wait_for(counted: Any) -> None:
    counting, facts = counted
    counting.signals.thread = -1
    counting.start()
    list(LOADER)
    counting.stop(4)
    counting.tell(first=True)
    assert facts == {}


class Sweeps:
    __slots__ = ("ids", "points", "remarks")

    def __init__(self, samples: list[int]) -> None:
        self.ids = samples
        self.points = torch.tensor(samples)
        self.remarks = None if samples[0] == 2 else torch.zeros(2)


@dataclass(frozen=True)
class Frozen:
    points: torch.Tensor


class Pinned(Sweeps):
    def pin_memory(self) -> Pinned:
        return self


@pytest.mark.parametrize(
    ("collate", "kind", "tensors"),
    [
        (Sweeps, "Sweeps", ["points"]),  # the others are no tensors, or not in every batch
        (lambda samples: {"batch": Sweeps(samples), "size": 2}, "Sweeps", ["points"]),
        (lambda samples: Frozen(torch.tensor(samples)), "Frozen", []),
        (Pinned, "Pinned", None),
        (lambda samples: (torch.tensor(samples), samples), "tuple", None),
        (lambda samples: samples if samples[0] else Sweeps(samples), "Sweeps", []),
    ],
)
def test_batches_that_torch_does_not_pin(
    counted: Any, collate: Any, kind: str, tensors: list[str] | None
) -> None:
    counting, facts = counted
    loader = DataLoader(range(6), batch_size=2, collate_fn=collate)  # type: ignore[arg-type]
    counting.sites.by_id[id(loader)] = counting.sites.by_id[id(LOADER)]
    list(loader)
    counting.tell(first=True)
    assert facts["batch_type"] == kind
    assert facts.get("batch_tensors") == tensors
    assert facts.get("batch_file") == (__file__ if tensors is not None else None)


SCRIPT = """
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Notes(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return [(index * place) % 7 for place in range(9)]


def pack(notes):
    total = 0
    for note in notes:
        time.sleep(0.002)  # line: slow
    return torch.tensor(notes, dtype=torch.float32)


def ahead(loader):
    held = None
    for batch in loader:  # line: wait
        if held is not None:
            yield held
        held = batch
    yield held


def loader_of(epoch):
    return DataLoader(Notes(), 4, num_workers=2, collate_fn=pack)  # line: made


if __name__ == "__main__":
    net = torch.nn.Linear(9, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(5):
        for notes in ahead(loader_of(epoch)):
            net(notes).square().mean().backward()
            optimizer.step()
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    folder = tmp_path_factory.mktemp("batches")
    return Captured(request(write(folder, SCRIPT)), folder)


def line(name: str) -> int:
    return next(at for at, text in enumerate(SCRIPT.splitlines(), 1) if f"# line: {name}" in text)


def test_a_script_that_makes_its_loader_anew(captured: Captured) -> None:
    (site,) = (one for one in captured.facts.sites if one.kind == Loader.KIND)
    loader = facts_of(Loader, site)
    assert site.line == line("made")
    assert [at for _, at in site.uses] == [line("wait")]
    assert (loader.made, loader.epochs_started, loader.batches_per_epoch) == (5, 5, 4)
    assert loader.starts_timed
    assert loader.wait_ms is not None and loader.start_ms is not None
    assert loader.start_ms > 8  # a worker cannot have its batch sooner
    assert loader.wait_ms * 4 > loader.start_ms / 2


def test_its_workers_lines_are_recorded_before_their_last_batches(captured: Captured) -> None:
    """Few steps: the capture comes when all batches are made."""
    workers = captured.facts.workers
    assert workers is not None
    slowest = max(workers.lines, key=lambda one: one.batch_ms)
    assert (slowest.line, slowest.calls) == (line("slow"), 4)
    assert slowest.batch_ms > 8
