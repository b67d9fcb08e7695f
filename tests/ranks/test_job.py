"""Runs and traces that are no ranks of one job are refused, in one line that says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from warpline import runs
from warpline.__main__ import main
from warpline.model.problem import Problem
from warpline.ranks.job import of_one_job
from warpline.ranks.merge import merge
from warpline.ranks.paths import of_ranks
from warpline.ranks.reduce import LineTime, RankTable

LINES = (LineTime("train.py", 5, "main", 10.0, 0.0, 0.0),)
RUN = RankTable("runs/a", 0, 2, job="/work/train.py --big", step_ms=10.0, lines=LINES)
TRACE = RankTable("traces/a.json", 0, 2, step_ms=10.0, lines=LINES)


def test_ranks_of_one_job_pass() -> None:
    job = [RUN, replace(RUN, source="runs/a/ranks/1", rank=1)]
    assert of_one_job(job) == job
    traces = [TRACE, replace(TRACE, source="traces/b.json", rank=1)]
    assert of_one_job(traces) == traces
    unknown = [replace(one, rank=-1, world=1) for one in traces]
    assert of_one_job(unknown) == unknown


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(RUN, source="runs/b", rank=1, job="/work/other.py"), "the other /work/other.py"),
        (replace(RUN, source="runs/b", rank=1, world=4), "one is of 2 ranks, the other of 4"),
        (replace(RUN, source="runs/b"), "both are rank 0"),
        (replace(TRACE, rank=1, world=8), "one is of 2 ranks, the other of 8"),
    ],
)
def test_what_differs_is_said(other: RankTable, said: str) -> None:
    for order in ([RUN, other], [other, RUN]):
        with pytest.raises(Problem, match=said) as raised:
            merge(order)
        assert str(raised.value).startswith(f"{RUN.source} and {other.source} are not ranks of one job")


@pytest.mark.process
def test_runs_of_a_single_process_are_refused(
    recorded: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        shutil.copytree(recorded("quickstart"), tmp_path / name)
    assert main(["ranks", str(tmp_path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("each is a run of one process (warpline compare shows two runs)")


def test_of_several_traces_of_a_rank_the_newest_is_used() -> None:
    late = replace(TRACE, source="traces/0.json", began_ns=5, step_ms=20.0)
    other = replace(TRACE, source="traces/b.json", rank=1)
    for order in ([TRACE, late, other], [other, late, TRACE]):
        merged = merge(order)
        assert (merged.ranks, merged.step_ms) == ((0, 1), 20.0)
        assert merged.notes[0] == "rank 0 has 2 traces, and of each rank the newest is used: traces/0.json"


def test_a_folder_of_runs_stands_for_all_their_ranks(recorded: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(recorded("nccl"), tmp_path / "node0")
    found = of_ranks([tmp_path])
    assert found == of_ranks([tmp_path / "node0"])
    assert [runs.manifest(folder).rank for folder in found] == [0, 1]
