"""Samples that are got in a child that is forked for it: which datasets give the same ones again, and how
many cores they keep busy there."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import warpline
from warpline import pipeline
from warpline.capture.runner.resident import Resident
from warpline.capture.runner.session import Session
from warpline.capture.runner.waits import samples
from warpline.capture.runner.waits.batches import Spent
from warpline.capture.runner.waits.samples import try_them
from warpline.text.edits import apply
from warpline.wire.run import Request

pytest.importorskip("torch")
import torch
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

pytestmark = pytest.mark.process
COUNT = 100


class Data:
    """``make(row)`` for each of ``COUNT`` rows, and ``state`` to read from it."""

    def __init__(self, make: Any, state: Any = None) -> None:
        self.make, self.state = make, state

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, row: int) -> Any:
        return self.make(row)


def facts(dataset: Any, before: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    """What the trial of a loader that the steps wait for tells of its samples."""
    found = tried(dataset, before, **given)
    return {name: found[name] for name in found if name != "worker_cores"}


def tried(
    dataset: Any, before: dict[str, Any] | None = None, beside: float = 0.0, **given: Any
) -> dict[str, Any]:
    """What it adds to the facts, where so many other threads worked while the main process loaded."""
    loader = DataLoader(dataset, **{"batch_size": 10, "shuffle": True, **given})
    known = {} if isinstance(dataset, IterableDataset) else {"dataset_length": len(dataset)}
    told: dict[str, Any] = {"wait_ms": 3.0, **known, **(before or {})}
    spent = Spent(("loader", None, lambda: loader, told, set(), None), SimpleNamespace())  # type: ignore[arg-type]
    spent.asked(1000, True, 1000, int(1000 * (1 + beside)))
    state = torch.get_rng_state()
    try_them(torch, [spent])
    assert torch.equal(state, torch.get_rng_state())  # the child's draws are its own
    return {name: told[name] for name in told if name not in ("wait_ms", "dataset_length")}


def image(row: int) -> torch.Tensor:
    return torch.full((2, 3), float(row))


@pytest.mark.parametrize(
    ("make", "form", "size"),
    [
        (lambda row: (image(row), row), "list", 32),
        (lambda row: [np.full(4, row, np.float32), 0.5 * row], "list", 24),
        (image, "tensor", 24),
        (float, "tensor", 8),
        (lambda row: {"x": image(row), "y": row % 3}, "dict", 32),
    ],
)
def test_samples_that_stay_the_same(make: Any, form: str, size: int) -> None:
    found = facts(Data(make))
    assert (found["sample_form"], found["sample_bytes"]) == (form, size)
    assert 0 < found["sample_ms"] < 100 and 0 < found["rows_ms"] < 100
    assert found["dataset_names"] == ["make", "state"]


def test_the_names_of_what_a_subset_is_of() -> None:
    found = facts(Subset(Data(lambda row: (image(row), row)), range(50)))  # type: ignore[arg-type]
    assert found["sample_form"] == "list"
    assert found["dataset_names"] == ["dataset", "indices", "make", "state"]


def test_a_list_of_samples() -> None:
    found = facts([(image(row), row) for row in range(COUNT)])
    assert (found["sample_form"], found["dataset_names"]) == ("list", [])


def flipped(row: int) -> torch.Tensor:
    """A random transform that does nothing this time: only the draw shows it."""
    return image(row) if torch.rand(1).item() >= 0 else image(0)


GENERATOR = np.random.default_rng(3)
SEEN: list[int] = []


def counted(row: int) -> torch.Tensor:
    SEEN.append(row)
    return image(len(SEEN))


def slow_once(row: int) -> torch.Tensor:
    if row not in SEEN:
        SEEN.append(row)
        time.sleep(0.002)
    return image(row)


@pytest.mark.parametrize(
    "make",
    [
        flipped,
        lambda row: image(row) if random.random() >= 0 else image(0),
        lambda row: image(row) if np.random.rand() >= 0 else image(0),
        lambda row: image(row) + float(GENERATOR.random()),
        counted,
        slow_once,  # the dataset keeps its samples itself
        lambda row: torch.zeros(1 + row % 2),  # torch makes no batch of all
        lambda row: (image(row), str(row)),
        lambda row: (image(row), (row, row)),
        lambda row: (image(row), row if row % 2 else float(row)),  # batches differ in type
        lambda row: image(row).requires_grad_(),
        lambda row: 1 / 0,
    ],
)
def test_samples_that_cannot_be_kept(make: Any) -> None:
    SEEN.clear()
    assert facts(Data(make)) == {}
    assert not SEEN


class Batches(Data):
    def __getitems__(self, rows: list[int]) -> Any:
        return [self.make(-row) for row in rows]


def test_a_dataset_that_grows_makes_batches_or_has_a_network_that_is_trained() -> None:
    assert facts(Data(image), before={"dataset_length": COUNT - 1}) == {}
    assert facts(Batches(image)) == {}
    network = torch.nn.Linear(3, 3)
    assert facts(Data(image, network)) == {}
    assert facts(Subset(Data(image, network), range(50))) == {}  # type: ignore[arg-type]
    assert facts(Data(image, network.requires_grad_(False)))["sample_form"] == "tensor"


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return iter([image(1)] * 40)

    def __len__(self) -> int:
        return 40


@pytest.mark.parametrize(
    ("dataset", "given"),
    [
        (Stream(), {"shuffle": False}),
        (Data(image), {"collate_fn": torch.stack}),
        (Data(image), {"batch_size": None, "shuffle": False}),
        (range(COUNT), {}),
    ],
)
def test_loaders_that_are_not_tried(dataset: Any, given: dict[str, Any]) -> None:
    assert facts(dataset, **given) == {}


def hashed(row: int) -> torch.Tensor:
    """Another thread works, which does not hold Python's lock."""
    worker = threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 20_000))
    worker.start()
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
    worker.join()
    return torch.rand(1)


def of_torch(row: int) -> torch.Tensor:
    return torch.rand(1 << 18).sin()


def test_cores_that_samples_keep_busy_in_a_worker() -> None:
    assert tried(Data(hashed), beside=3.0, collate_fn=list)["worker_cores"] > 1.5
    assert (
        tried(Data(of_torch), beside=3.0, collate_fn=list)["worker_cores"] < 1.2
    )  # torch has one thread there
    assert (
        tried(Data(float), beside=3.0, collate_fn=lambda _: [hashed(0) for _ in range(9)])["worker_cores"]
        > 1.5
    )


def test_cores_are_not_asked_for_without_need() -> None:
    assert tried(Data(of_torch), beside=0.1, collate_fn=list) == {}
    assert tried(Data(of_torch), beside=3.0, collate_fn=list, num_workers=1) == {}
    assert tried(Stream(), beside=3.0, shuffle=False) == {}


def test_cores_are_told_where_samples_differ_or_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(tried(Data(flipped), beside=3.0)) == {"worker_cores"}
    monkeypatch.setattr(samples, "_kept", lambda *_: time.sleep(60))
    monkeypatch.setattr(samples, "LIMIT_S", 1.0)
    assert set(tried(Data(image))) == {"worker_cores"}


def test_samples_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = TensorDataset(torch.zeros(COUNT, 8))
    whole = COUNT * 32
    monkeypatch.setattr(samples, "free_bytes", lambda: int(1.01 * whole / samples.MEMORY_SHARE))
    assert facts(data)["sample_bytes"] == 32
    monkeypatch.setattr(samples, "free_bytes", lambda: int(0.99 * whole / samples.MEMORY_SHARE))
    assert facts(data) == {}


def test_a_child_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "LIMIT_S", 0.2)
    began = time.monotonic()
    assert facts(Data(lambda row: time.sleep(60))) == {}
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("world", "asked", "tried"),
    [
        (1, Request(), True),
        (2, Request(), False),
        (1, Request(whole_run=True), False),
        (1, Request(every=100), False),
        (1, Request(probe_s=0.0), False),
    ],
)
def test_only_where_the_script_is_ended_next(world: int, asked: Request, tried: bool) -> None:
    session: Any = SimpleNamespace(control=SimpleNamespace(world=world, request=asked))
    assert Session.tries_samples(session) is tried
    assert not Resident.tries_samples(session)


SCRIPT = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Waves(Dataset):
    def __init__(self, shift):
        self.shift = shift

    def __len__(self):
        return 96

    def __getitem__(self, row):
        print("made", row)
        time.sleep(0.001)
        return torch.sin(torch.arange(8) * row + self.shift), row % 2


waves = Waves(0.5)
loader = DataLoader(waves, batch_size=8, shuffle=True, drop_last=True)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(EPOCHS):
    for wave, kind in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(wave), kind)
        loss.backward()
        optimizer.step()
        if epoch < 3:
            print(f"loss {loss.item():.9f}")
"""


def test_a_script_with_its_edit_has_the_same_losses(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("EPOCHS", "400"))
    done = warpline("profile", script.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    found = {one.rule: one for one in pipeline.report_of(run).findings}
    finding = found["loader-without-workers"]
    assert [fix.title for fix in finding.fixes] == ["Make all samples once"]
    assert finding.predicted is not None and finding.predicted.speedup > 2
    edited = apply(SCRIPT, list(finding.fixes[0].edits))
    said = []
    for text in (SCRIPT, edited):
        script.write_text(text.replace("EPOCHS", "3"))
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        said.append(done.stdout.splitlines())
    losses = [[line for line in lines if line.startswith("loss")] for lines in said]
    assert losses[0] == losses[1] and len(losses[0]) == 36
    assert [len(lines) - 36 for lines in said] == [3 * 96, 96]  # samples that were made
