"""A launched script: every rank is recorded over the same steps, each into its own folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline import runs

TEXT = """\
import sys, torch
import torch.distributed as dist
dist.init_process_group("gloo")
print(f"rank {dist.get_rank()} {sys.argv[1:]}\\n", end="", flush=True)  # one piece: both write to one file
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    net(torch.randn(4, 16)).sum().backward()
    optimizer.step()
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_two_ranks(tmp_path: Path) -> None:
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    asked = request(write(tmp_path, TEXT), launcher=launcher, argv=("word",), warmup=2)
    captured = Captured(asked, tmp_path)
    assert sorted(captured.output.splitlines()) == ["rank 0 ['word']", "rank 1 ['word']"]
    ranks = [runs.manifest(folder) for folder in (captured.run, captured.run / "ranks" / "1")]
    assert [rank.rank for rank in ranks] == [0, 1]
    assert [rank.world_size for rank in ranks] == [2, 2]
    assert len({len(rank.timed_ns) for rank in ranks}) == 1
    assert len({len(rank.captured) for rank in ranks}) == 1
    sites = {site.kind: site for site in captured.facts.sites}
    assert sites["parallel"].line == 5
    assert sites["parallel"].facts["type"] == "DistributedDataParallel"
