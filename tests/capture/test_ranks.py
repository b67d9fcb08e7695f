"""A launched script: every rank is recorded over the same steps, each into its own folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline import runs
from warpline.wire.run import Locations

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


LOOP = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")

def plain(times):
    total = 0.0
    for value in range(times):
        total += value
    return total

def walk(x, times):
    total = 0.0
    for value in range(times):
        total += value
        if value == 40 and len(losses) % 5 == 4:
            x = torch.floor(x)
    return x * total

net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
losses = []
while True:
    x = torch.randn(4, 16)
    if dist.get_rank() == 1:
        x = x * plain(60000)
        x = walk(x, 9000)
    net(x).sum().backward()
    optimizer.step()
    losses.append(0)
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


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_a_long_loop_on_one_rank(tmp_path: Path) -> None:
    """Its lines are left out there, and all ranks record the same steps, also where one of them starts again
    because an operator ran in a loop whose lines it had left out."""
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    captured = Captured(request(write(tmp_path, LOOP), launcher=launcher, warmup=2, steps=6), tmp_path)
    first, second = (runs.manifest(folder) for folder in (captured.run, captured.run / "ranks" / "1"))
    assert len(first.captured) == len(second.captured) == 6
    shortest_ns = min(end - begin for begin, end in second.captured)
    apart_ns = [abs(one[0] - other[0]) for one, other in zip(first.captured, second.captured, strict=True)]
    assert max(apart_ns) < shortest_ns
    recorded = runs.read(captured.run / "ranks" / "1", "locations.json", Locations)
    assert recorded.estimated
