"""A rank that dies costs its own data, not that of the others."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from tests.kineto import KinetoRun
from warpline import runs
from warpline.capture.outcome import Outcome
from warpline.capture.rescue import rescue
from warpline.wire.messages import Ended

DIES_WRITING = """\
import os, sys, time, torch
import torch.distributed as dist
dist.init_process_group("gloo")
replace = os.replace
def dying(a, b):
    others = os.path.join(os.path.dirname(b), "..", "..", "manifest.json")
    if b.endswith("manifest.json"):
        while not os.path.exists(others):
            time.sleep(0.02)
        os._exit(9)
    return replace(a, b)
if dist.get_rank() == 1:
    os.replace = dying
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""


def made(folder: Path, rank: int, world: int) -> Path:
    run = KinetoRun(folder, 1000).write()
    told = asdict(runs.manifest(run)) | {"rank": rank, "world_size": world}
    (run / "manifest.json").write_text(json.dumps(told))
    return run


def test_the_first_that_wrote_takes_the_place_of_rank_0(tmp_path: Path) -> None:
    partial = tmp_path / "partial"
    for rank in (1, 2, 3):
        made(partial / "ranks" / str(rank), rank, 4)
    (partial / "ranks" / "2" / "manifest.json").unlink()
    (partial / "trace.json").write_text("of rank 0, cut")
    assert rescue(partial, Outcome(ended=Ended(error="ValueError", clean=False)))
    told = runs.manifest(partial)
    assert told.rank == 1
    assert told.notes == (
        "ranks 0, 2 of 4 left no data (a rank failed with ValueError): this is what the others recorded",
    )
    assert "traceEvents" in (partial / "trace.json").read_text()
    assert [folder.name for folder in runs.rank_folders(partial)] == ["3"]


def test_a_rank_that_ended_well_is_not_said_to_have_failed(tmp_path: Path) -> None:
    """Rank 0 went on to its end; rank 1 was killed, and said nothing."""
    assert rescue(made(tmp_path, 0, 2), Outcome(ended=Ended(clean=True)))
    assert runs.manifest(tmp_path).notes == ("rank 1 of 2 left no data: this is what the others recorded",)


def test_where_no_rank_wrote_there_is_nothing(tmp_path: Path) -> None:
    (made(tmp_path / "ranks" / "1", 1, 2) / "manifest.json").unlink()
    assert not rescue(tmp_path, Outcome())


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_a_rank_that_dies_while_it_writes(tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    captured = Captured(request(write(tmp_path, DIES_WRITING), launcher=launcher, warmup=2), tmp_path)
    assert captured.manifest.rank == 0
    assert len(captured.manifest.captured) == 3
    assert any("rank 1 of 2 left no data" in note for note in captured.manifest.notes)
    assert runs.rank_folders(captured.run) == []
