"""On two GPUs: exchanges between ranks are on their lines, and what of them nothing hides is said."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.captures.record import pack
from tests.conftest import warpline
from warpline import pipeline

SCRIPT = Path(__file__).parent / "ranks/nccl.py"


def line_with(mark: str) -> int:
    (number,) = (n for n, text in enumerate(SCRIPT.read_text().splitlines(), 1) if mark in text)
    return number


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The run folder of rank 0 and its report as JSON."""
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU here; this needs two")
    folder = tmp_path_factory.mktemp("ranks")
    launcher = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2"  # torchrun, also off the PATH
    done = warpline(
        "profile", "--launcher", launcher, "--json", "-", SCRIPT, cwd=folder, NCCL_NVLS_ENABLE="0"
    )
    assert done.returncode == 0, done.stderr
    (run,) = (path.parent for path in (folder / ".warpline/runs").glob("*/manifest.json"))
    if "WARPLINE_RECORDINGS" in os.environ:
        pack(run, Path(os.environ["WARPLINE_RECORDINGS"], "nccl.tar.xz"))
    return run, json.loads(done.stdout)


def test_exchanges_are_on_the_lines_that_cause_them(two_ranks: tuple[Path, dict[str, Any]]) -> None:
    report = two_ranks[1]
    exchanging = {
        line["line"]
        for line in report["lines"]
        if any("nccl" in kernel["name"].lower() for kernel in line["kernels"])
    }
    assert line_with("# only: an exchange") in exchanging
    assert report["attributed"]["device_percent"] >= 99
    total = sum(line["step_ms"] for line in report["lines"]) + report["unattributed"]["step_ms"]
    assert total == pytest.approx(report["steps"]["step_ms"], rel=0.01)


def test_work_is_on_its_line_also_when_ranks_exchange(two_ranks: tuple[Path, dict[str, Any]]) -> None:
    users = [
        line["line"]
        for line in two_ranks[1]["lines"]
        if "aten::special_i0" in {op["name"] for op in line["ops"]}
    ]
    assert users == [line_with("# only: aten::special_i0")]


def test_what_nothing_hides_of_the_exchange_is_found(two_ranks: tuple[Path, dict[str, Any]]) -> None:
    run, report = two_ranks
    exposed = pipeline.profile_of(run).totals["exposed_communication_ms"]
    assert 0.1 * report["steps"]["step_ms"] < exposed <= report["steps"]["step_ms"]
    assert "exposed-communication" in {finding["rule"] for finding in report["findings"]}
