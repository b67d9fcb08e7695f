"""Ranks of a job: the slow one is named, with its line, wherever the tables are made."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kineto import MAIN, KinetoRun
from warpline import ranks
from warpline.__main__ import main
from warpline.attribution import attribute
from warpline.model.profile import Profile
from warpline.model.ranks import LateLine
from warpline.ranks.merge import line_of, merge
from warpline.ranks.paths import of_ranks
from warpline.ranks.reduce import LineTime, RankTable, table_of
from warpline.trace.columns import Trace

RANKS, STEPS, STEP_US = 4, 6, 1000
NCCL = "ncclDevKernel_AllReduce"


def job(folder: Path, slow: int | None, seed: int = 0) -> Path:
    """Traces of four ranks. In each step model.py(5) computes, then all exchange for at least 50 us.

    ``slow`` computes for 300 us more, on model.py(9); all ranks differ by up to 20 us at random. Clocks
    differ by seconds.
    """
    folder.mkdir()
    chance = random.Random(seed)
    busy = [[400 + chance.uniform(0, 20) for _ in range(STEPS)] for _ in range(RANKS)]
    for rank in range(RANKS):
        run = KinetoRun(folder.parent / f"made{rank}", STEPS * STEP_US)
        for step in range(STEPS):
            begin = step * STEP_US + rank * 1e6
            more = 300 if rank == slow else 0
            last = max(one[step] for one in busy) + (300 if slow is not None else 0)
            run.mark(f"ProfilerStep#{step}", begin, STEP_US)
            run.complete("python_function", "model.py(5): forward", (begin, 100), (MAIN, MAIN))
            run.kernel(begin + 10, busy[rank][step], launched=begin + 2)
            run.complete("python_function", "model.py(9): augment", (begin + 100, 100), (MAIN, MAIN))
            if more:
                run.kernel(begin + 10 + busy[rank][step], more, launched=begin + 110)
            run.complete("python_function", "model.py(20): reduce", (begin + 200, 100), (MAIN, MAIN))
            arrived = begin + 10 + busy[rank][step] + more
            run.kernel(
                arrived,
                begin + 10 + last + 50 - arrived,
                launched=begin + 210,
                name=NCCL,
            )
            run.call("cudaDeviceSynchronize", begin + 300, STEP_US - 300)
        (run.write() / "trace.json").rename(folder / f"host_rank{rank}.1.pt.trace.json")
    return folder


def test_a_planted_slow_rank_and_its_line_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = job(tmp_path / "job", slow=2)
    assert main(["ranks", str(folder), "--json", str(tmp_path / "ranks.json")]) == 0
    found = json.loads((tmp_path / "ranks.json").read_text())
    assert found["ranks"] == [0, 1, 2, 3]
    late = found["straggler"]
    assert (late["rank"], late["file"], late["line"]) == (2, "model.py", 9)
    assert late["late_ms"] == pytest.approx(0.3, abs=0.03)
    assert late["more_ms"] == pytest.approx(0.3, abs=0.03)
    (line,) = [line for line in found["lines"] if line["line"] == 9]
    assert line["slowest_rank"] == 2
    assert line["spread_ms"] == pytest.approx(0.3, abs=0.03)
    printed = capsys.readouterr().out
    assert "rank 2 comes last in every step" in printed
    assert "model.py:9" in printed


def test_ranks_whose_hosts_run_ahead_are_compared_by_what_each_step_queued(tmp_path: Path) -> None:
    """A step queues its work in 40 us, which takes the devices 750 us and more: nearly all of it runs steps
    later, on the slow rank later than on the others."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        run = KinetoRun(folder.parent / f"ahead{rank}", STEPS * 40 + 6000)
        end = 100.0
        for step in range(STEPS):
            begin = step * 40.0
            run.mark(f"ProfilerStep#{step}", begin, 40)
            run.complete("python_function", "model.py(5): forward", (begin, 20), (MAIN, MAIN))
            busy = 400 + 300 * rank
            run.kernel(end, busy, launched=begin + 2)
            run.complete("python_function", "model.py(20): reduce", (begin + 20, 15), (MAIN, MAIN))
            run.kernel(end + busy, 750 - busy, launched=begin + 22, name=NCCL)
            end += 750
        (run.write() / "trace.json").rename(folder / f"host_rank{rank}.1.pt.trace.json")
    merged = merge([table_of(path) for path in sorted(folder.iterdir())])
    assert merged.notes == ()
    assert merged.straggler is not None
    assert (merged.straggler.rank, round(merged.straggler.late_ms, 3)) == (1, 0.3)


def test_a_host_that_is_ahead_waits_on_its_device_for_one_as_quick_as_itself(tmp_path: Path) -> None:
    """Both queue for 380 us of a step of 400; the second began 300 us later."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        run = KinetoRun(folder.parent / f"equal{rank}", STEPS * 400 + 400)
        for step in range(STEPS):
            begin = step * 400.0
            run.mark(f"ProfilerStep#{step}", begin, 400)
            run.complete("python_function", "model.py(5): forward", (begin, 380), (MAIN, MAIN))
            run.kernel(begin + 10, 80, launched=begin + 2)
            run.kernel(begin + 390 - 300 * (1 - rank), 10 + 300 * (1 - rank), launched=begin + 80, name=NCCL)
        (run.write() / "trace.json").rename(folder / f"host_rank{rank}.1.pt.trace.json")
    tables = [table_of(path) for path in sorted(folder.iterdir())]
    assert merge(tables).straggler is None
    unknown = merge([replace(one, host_ns=None) for one in tables]).straggler
    assert unknown is not None and round(unknown.late_ms, 3) == 0.3


def of_report(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines_ms: tuple[float, ...]) -> LateLine | None:
    """What a report names as the line of rank 1, for which the others wait 8 ms. ``lines_ms``: of each rank,
    its lines from 5 on."""

    def table(path: Path) -> RankTable:
        costs = lines_ms[int(path.name)]
        lines = tuple(LineTime("train.py", 5 + at, "main", ms, 0.0, 0.0) for at, ms in enumerate(costs))
        return RankTable(str(path), lines=lines)

    monkeypatch.setattr(sys.modules[line_of.__module__], "table_of", table)
    for number in range(1, len(lines_ms)):
        (folder / "ranks" / str(number)).mkdir(parents=True)
    return line_of(1, 8.0, folder, table(Path("0")))


def test_a_report_names_the_line_that_has_most_of_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = of_report(tmp_path, monkeypatch, (1, 2), (2, 10), (1, 4))
    assert found == LateLine("train.py", 6, 7.0), "7 more than the median of 2 and 4"


def test_a_report_names_no_line_where_all_are_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_report(tmp_path, monkeypatch, (1, 1, 1), (4, 4, 4), (1, 1, 1)) is None


def recorded_ranks(**more: bool) -> list[RankTable]:
    """Two ranks on hosts. A step of 20 ms takes 350 ms while it is recorded: rank 1 computes in plain Python
    for 8 ms more, and for 330 ms more when that is recorded."""
    ms = 1_000_000
    found = []
    for rank, (compute_ms, exchange_ns) in enumerate([(1.0, 340 * ms), (9.0, 10 * ms)]):
        lines = (
            LineTime("train.py", 5, "slow", compute_ms, 0.0, 0.0),
            LineTime("train.py", 9, "main", 20.0 - compute_ms, 0.0, 0.0),
        )
        table = RankTable(str(rank), rank, 2, timed=True, step_ms=20.0, steps_ns=(350 * ms,) * 5, lines=lines)
        found.append(replace(table, exchanges_ns=((exchange_ns,),) * 5, **more))  # type: ignore[arg-type]
    return found


def test_what_recording_adds_to_a_late_rank_is_not_waited_for() -> None:
    found = merge(recorded_ranks(on_host=True, sampled=True)).straggler
    assert found is not None
    assert (found.rank, found.line, round(found.late_ms, 3)) == (1, 5, 8.0)


def test_a_rank_that_is_late_only_while_it_is_recorded_is_not_blamed() -> None:
    tables = recorded_ranks(on_host=True, sampled=True)
    same = merge([tables[0], replace(tables[1], lines=tables[0].lines)])
    assert same.straggler is None
    assert "perhaps only because it is being recorded" in same.notes[0]


@pytest.mark.parametrize("seed", range(3))
def test_without_a_planted_one_none_is_reported(seed: int, tmp_path: Path) -> None:
    found = merge(ranks.reduced(of_ranks([job(tmp_path / "job", None, seed)]), workers=1))
    assert found.straggler is None
    assert found.notes == ()


def test_a_rank_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    folder = job(tmp_path / "job", slow=1)
    (folder / "host_rank3.1.pt.trace.json").write_text("{}")
    found = merge(ranks.reduced(of_ranks([folder]), workers=1))
    assert found.ranks == (0, 1, 2)
    assert found.straggler is not None
    assert found.straggler.rank == 1
    assert len(found.notes) == 1


def test_a_mistake_of_ours_about_one_rank_does_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def third_fails(events: Trace) -> Profile:
        seen.append(events)
        if len(seen) == 3:
            raise IndexError("out of bounds")
        return attribute(events)

    monkeypatch.setattr("warpline.ranks.reduce.attribute", third_fails)
    found = merge(ranks.reduced(of_ranks([job(tmp_path / "job", slow=1)]), workers=1))
    assert len(found.ranks) == 3
    assert "IndexError: out of bounds" in found.notes[0]


def test_the_same_on_this_machines_cores_and_on_dask(tmp_path: Path) -> None:
    """Bit for bit, whatever the order."""
    distributed = pytest.importorskip("distributed")
    paths = of_ranks([job(tmp_path / "job", slow=2)])
    here = merge(ranks.reduced(paths, workers=1))
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path / "dask")
    )
    with cluster:
        there = merge(ranks.reduced(paths[::-1], cluster.scheduler_address))
    assert repr(there) == repr(here)
    assert here.straggler is not None


def test_a_scheduler_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("warpline.ranks.engine.CONNECT", "200ms")
    folder = job(tmp_path / "job", None)
    assert main(["ranks", str(folder), "--dask", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
