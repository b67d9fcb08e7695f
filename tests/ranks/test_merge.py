"""Which recordings are the ranks of one job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warpline.model.problem import Problem
from warpline.ranks.merge import merge
from warpline.ranks.reduce import LineTime, RankTable

LINE = LineTime("train.py", 5, "main", 10.0, 0.0, 0.0)


def rank(number: int, job: str = "train.py with 2 ranks", begun_ns: int = 1000, line: int = 5) -> RankTable:
    source = f"{job}-{number}-{begun_ns}"
    lines = (replace(LINE, line=line, step_ms=begun_ns / 100),)
    return RankTable(source, number, 2 if "2" in job else 1, job, begun_ns, step_ms=10.0, lines=lines)


@pytest.mark.parametrize(
    "other",
    [rank(0, "eval.py with 2 ranks"), rank(0, "train.py with one process"), rank(1, "a job with 4 ranks")],
)
def test_recordings_of_several_jobs_are_one_line(other: RankTable) -> None:
    with pytest.raises(Problem) as problem:
        merge([rank(0), rank(1), other])
    assert "\n" not in str(problem.value)
    assert rank(0).job in str(problem.value)
    assert other.source in str(problem.value)


def test_of_a_job_that_was_recorded_twice_the_newest_counts() -> None:
    older = [rank(0), rank(1)]
    newer = [rank(0, begun_ns=2000), rank(1, begun_ns=2000)]
    found = merge([newer[1], older[0], older[1], newer[0]])
    assert (found.ranks, found.world) == ((0, 1), 2)
    assert [line.mean_ms for line in found.lines] == [20.0]
    assert found.notes[0] == "2 ranks of older recordings were left out"
    assert found.lines == merge(newer).lines


def test_ranks_of_two_recordings_are_never_mixed() -> None:
    """The second recording lost a rank: the first one's is no part of it."""
    older = [rank(0), rank(1, begun_ns=1200)]
    found = merge([rank(0, begun_ns=2000), *older])
    assert found.ranks == (0,)
    assert found.notes[:2] == ("2 ranks of older recordings were left out", "1 of 2 ranks are missing")


def test_a_rank_that_begins_a_little_earlier_belongs_to_the_newest_recording() -> None:
    jobs = "train.py with 2 ranks"
    newer = [rank(0, jobs, 5000), rank(1, jobs, 4900)]
    assert merge([rank(0, jobs, 1000), *newer]).ranks == (0, 1)


def test_ranks_that_only_their_names_number_are_all_kept() -> None:
    """Two machines may each have a rank 0 among their own."""
    found = merge([replace(rank(0, ""), source=name) for name in ("a/rank0", "b/rank0")])
    assert found.ranks == (0, 1)


def test_traces_with_no_line_in_common_are_doubted() -> None:
    said = "no line has any time on two of them: they may not be ranks of one job"
    assert said in merge([rank(0, ""), rank(1, "", line=9)]).notes
    assert said not in merge([rank(0, ""), rank(1, "")]).notes
