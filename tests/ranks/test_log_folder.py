"""The folder that ``tensorboard_trace_handler`` leaves behind a job of several ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LIMIT_S, environment
from warpline import pipeline, ranks
from warpline.ranks.paths import of_ranks
from warpline.trace import foreign

SCRIPT = """\
import torch
import torch.distributed as dist
from torch.profiler import profile, schedule, tensorboard_trace_handler

def main():
    dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    handler = tensorboard_trace_handler("logs", use_gzip=True)
    when = schedule(wait=1, warmup=1, active=3)
    with profile(schedule=when, on_trace_ready=handler, record_shapes=True, with_stack=True) as prof:
        for _ in range(6):
            loss = net(torch.randn(32, 64)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
    dist.destroy_process_group()

main()
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, "train.py"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return folder / "logs"


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_each_rank_becomes_a_run_with_its_number(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(logs.parent)  # the trace names the script as it was called
    assert len(foreign.traces(logs)) == 2
    made = pipeline.import_trace(logs, folder=tmp_path)
    manifests = [pipeline.profile_of(run).manifest for run, _ in made]
    assert sorted((one.rank, one.world_size) for one in manifests) == [(0, 2), (1, 2)]
    for _, report in made:
        assert report.steps.captured == 3
        lines = {SCRIPT.splitlines()[one.line - 1].strip(): one for one in report.lines}
        # All frames of the loop stand below the last call of the trace.
        assert lines["loss.backward()"].step_ms > lines["prof.step()"].step_ms


@pytest.mark.skipif(sys.platform == "darwin", reason="gloo is not in every macOS build")
def test_the_ranks_side_by_side(logs: Path) -> None:
    merged = ranks.merge(ranks.reduced(of_ranks([logs]), workers=1))
    assert (merged.ranks, merged.world) == ((0, 1), 2)
    assert merged.straggler is None
    assert any("train.py" in line.file for line in merged.lines)
