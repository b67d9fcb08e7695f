"""What lines cost inside loader workers: a real loader with four workers, whose own clock is the truth."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.conftest import warpline
from warpline import pipeline
from warpline.capture.runner.workers.merged import merged

SCRIPT = """\
import hashlib
import os
import sys
import time
import torch
from torch.utils.data import DataLoader, Dataset

sys.executable = ""  # which starts no sampler: what was recorded is compared
SAMPLE = bytes(400_000)
MADE = []


def told(name, began):
    took = time.perf_counter() - began
    # A recorded batch; on a busy machine no two are alike. Their second ones do not count.
    if sys.gettrace() is not None and len(MADE) > 1:
        with open(f"{name}.{os.getpid()}", "a") as file:
            file.write(f"{took}\\n")


class Slow(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        began = time.perf_counter()
        time.sleep(0.005)  # line: sleep
        told("sleep", began)
        began = time.perf_counter()
        digest = hashlib.sha256(SAMPLE * 4).digest()  # line: hash
        told("hash", began)
        return torch.full((8,), float(digest[0]))


def collate(samples):
    began = time.perf_counter()
    time.sleep(0.03)  # line: collate
    told("collate", began)
    MADE.append(began)
    return torch.stack(samples)


if __name__ == "__main__":
    how = {"multiprocessing_context": sys.argv[1]} if len(sys.argv) > 1 else {}
    loader = DataLoader(Slow(), batch_size=4, num_workers=4, collate_fn=collate, **how)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""
BATCH = {"sleep": 4, "hash": 4, "collate": 1}


@pytest.mark.parametrize("how", [(), ("spawn",), ("forkserver",)], ids=["usual", "spawn", "forkserver"])
def test_lines_of_workers_take_what_their_own_clock_says(tmp_path: Path, how: tuple[str, ...]) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    done = warpline("profile", script.name, *how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    workers = pipeline.report_of(run).workers
    assert workers is not None and workers.batches >= 2
    code = SCRIPT.splitlines()
    for name, samples in BATCH.items():
        number = next(at for at, line in enumerate(code, 1) if f"# line: {name}" in line)
        (line,) = (line for line in workers.lines if (line.file, line.line) == (str(script), number))
        took = [float(each) for path in tmp_path.glob(f"{name}.*") for each in path.read_text().split()]
        assert line.batch_ms == pytest.approx(1000 * samples * statistics.fmean(took), rel=0.1), name
        assert line.calls == samples
        assert len(took) == workers.batches * samples
    assert "Loader workers" in done.stdout
    assert not list(run.glob("workers"))


LIBRARY = """\
import time
import torch


class Folder:
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return self.transform(decode(index))


def decode(index):
    time.sleep(0.004)
    return torch.full((8,), float(index % 7))
"""
OF_LIBRARY = """\
import sys
import time
import torch
from torch.utils.data import DataLoader, Subset

sys.path.insert(0, "site-packages")
from pictures.folder import Folder


def scaled(image):
    time.sleep(0.001)
    return image / 7


if __name__ == "__main__":
    data = Folder(scaled)
    loader = DataLoader(Subset(data, range(2048)), batch_size=8, num_workers=1)
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def test_a_library_s_dataset_is_recorded_by_the_library_s_lines(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "pictures"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "folder.py").write_text(LIBRARY)
    (tmp_path / "train.py").write_text(OF_LIBRARY)
    done = warpline("profile", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    report = pipeline.report_of(run)
    assert report.workers is not None
    first, second = report.workers.lines[:2]
    assert (Path(first.file).name, first.function, first.text) == ("folder.py", "decode", "time.sleep(0.004)")
    assert (Path(second.file).name, second.function, second.text) == ("train.py", "scaled", "")
    assert first.calls == 8
    (found,) = (one for one in report.findings if one.rule == "slow-sample-line")
    assert found.line == OF_LIBRARY.splitlines().index("    data = Folder(scaled)") + 1
    assert "`decode`" in found.message


def test_the_cost_of_an_event_is_what_recording_added() -> None:
    """By arithmetic: 100 events made 10 ms of 5 ms, so that each cost 50 us; the sleeping line had two."""
    told = {
        "recorded": 1, "recorded_ns": 10_000_000, "events": 100, "event_ns": 40_000.0,
        "plain_ns": [5_000_000],
        "lines": [["/p/a.py", 3, "f", 4_100_000, 2, 1], ["/p/a.py", 5, "f", 5_900_000, 98, 49]],
    }  # fmt: skip
    found = merged([told])
    assert found is not None
    assert found["batch_ms"] == pytest.approx(5.0)
    assert [line["batch_ms"] for line in found["lines"]] == pytest.approx([4.0, 1.0])


def test_a_part_of_a_batch_says_the_shares_where_there_is_nothing_else() -> None:
    """By arithmetic: lines of 6 and 2 ms in a batch of 8 that usually takes 4."""
    brief = {
        "recorded": 1, "recorded_ns": 8_000_000, "events": 0, "event_ns": 0.0, "plain_ns": [4_000_000],
        "lines": [["/p/a.py", 3, "f", 6_000_000, 1, 1], ["/p/a.py", 5, "f", 2_000_000, 1, 1]],
        "brief": True,
    }  # fmt: skip
    found = merged([brief])
    assert found is not None
    assert (found["batch_ms"], [line["batch_ms"] for line in found["lines"]]) == (4.0, [3.0, 1.0])
    whole = {
        **brief,
        "brief": False,
        "recorded_ns": 5_000_000,
        "lines": [["/p/a.py", 3, "f", 5_000_000, 1, 1]],
    }
    found = merged([brief, whole])
    assert found is not None
    assert (found["batches"], found["batch_ms"]) == (1, 5.0)


def test_no_workers_no_lines() -> None:
    assert merged([]) is None


def test_batches_that_were_only_timed() -> None:
    told = {"recorded": 0, "recorded_ns": 0, "events": 0, "event_ns": None, "lines": [], "sampled": None}
    found = merged([{**told, "plain_ns": [9_000_000, 4_000_000]}, {**told, "plain_ns": [3_000_000]}])
    assert found == {"batches": 0, "batch_ms": 4.0, "lines": []}
    assert merged([{**told, "plain_ns": []}]) is None


def test_waits_for_a_processor_are_no_time_of_the_batch() -> None:
    told = {"recorded": 0, "recorded_ns": 0, "events": 0, "event_ns": None, "lines": [], "sampled": None}
    plain, working = (
        [9_000_000, 30_000_000, 8_000_000],
        [(2_000_000, 1_000_000), (2_000_000, 22_000_000), (2_000_000, 0)],
    )
    found = merged([{**told, "plain_ns": plain, "working_ns": working}])
    assert found is not None
    assert (found["batch_ms"], found["queued_ms"], found["busy"]) == (9.0, 1.0, 0.25)


def test_a_wait_for_a_processor_that_is_longer_than_the_batch_says_nothing() -> None:
    told = {"recorded": 0, "recorded_ns": 0, "events": 0, "event_ns": None, "lines": [], "sampled": None}
    plain, longer = [4_000_000, 8_000_000], [(2_000_000, 6_000_000), (2_000_000, 0)]
    found = merged([{**told, "plain_ns": plain, "working_ns": longer}])
    assert found is not None
    assert found["busy"] == 0.25


ALL_LOADED = """\
import time
import torch
from torch.utils.data import DataLoader, IterableDataset


class Readings(IterableDataset):
    def __iter__(self):
        for _ in range(150):
            time.sleep(0.004)
            yield torch.randn(8)


if __name__ == "__main__":
    loader = DataLoader(Readings(), batch_size=None, num_workers=2, prefetch_factor=150)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, reading in enumerate(loader):
        time.sleep(0.03 if number else 5)  # by then the workers have loaded all, on a busy machine too
        model(reading).sum().backward()
        optimizer.step()
"""


@pytest.mark.process
def test_workers_with_nothing_left_to_load_in_the_capture(tmp_path: Path) -> None:
    """They load all batches before the second step. Their second ones tell the lines."""
    (tmp_path / "train.py").write_text(ALL_LOADED)
    done = warpline("profile", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / ".warpline/runs").iterdir()
    workers = pipeline.report_of(run).workers
    assert workers is not None
    assert workers.batches >= 1
    assert workers.lines[0].line == 9
    assert 4 <= workers.batch_ms - workers.queued_ms < 20, "a busy machine"
    assert "Loader workers" in done.stdout
    assert not list(run.glob("workers"))
