"""Exchanges that nothing hides, and those that wait for another rank. The runs are built by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kineto import KinetoRun, approx
from warpline.attribution import attribute
from warpline.model.profile import Profile
from warpline.trace import read
from warpline.wire.run import DeviceFacts

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def of_rank(folder: Path, exchanges: list[tuple[float, float]]) -> KinetoRun:
    run = KinetoRun(folder, 1000)
    run.line(0, 10)
    run.kernel(50, 500, launched=1)
    for start, length in exchanges:
        run.kernel(start, length, launched=2, name=NCCL, stream=20)
    return run


def several(run: KinetoRun, *others: KinetoRun) -> Profile:
    for other in others:
        other.write()
    run.write()
    path = run.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"world_size": 2}), encoding="utf-8")
    return attribute(read(run.folder))


def test_one_process_exchanges_nothing(tmp_path: Path) -> None:
    totals = of_rank(tmp_path, []).profile().totals
    assert "exposed_communication_ms" not in totals and "collective_wait_ms" not in totals


def test_what_no_kernel_hides_is_exposed(tmp_path: Path) -> None:
    """100 us beside the kernel, 250 us of the second one behind it."""
    totals = several(of_rank(tmp_path, [(100, 100), (500, 300)])).totals
    assert totals["exposed_communication_ms"] == approx(0.25)
    assert "collective_wait_ms" not in totals, "the other rank was not recorded"


def test_the_wait_for_another_rank_is_how_much_longer_this_one_was_in_it(tmp_path: Path) -> None:
    """The other rank's clock is 7 us off, and it came 200 us later to the second exchange."""
    other = of_rank(tmp_path / "ranks" / "1", [(107, 90), (707, 100)])
    totals = several(of_rank(tmp_path, [(100, 100), (500, 300)]), other).totals
    assert totals["exposed_communication_ms"] == approx(0.25)
    assert totals["collective_wait_ms"] == approx(0.15), "50 us of the wait lie beside the kernel"


STEPS, STEP_US = 3, 1000


def late(folder: Path, *lengths: tuple[float, ...], host_us: tuple[float, ...] = ()) -> dict[str, float]:
    """What is told of ranks whose exchange in each of three steps took so long, in microseconds.

    ``host_us``: what each rank's host does in a step before it waits for the device; 100 if left out.
    """
    ranks = []
    for number, own in enumerate(lengths):
        run = KinetoRun(folder if number == 0 else folder / "ranks" / str(number), STEPS * STEP_US, STEPS)
        run.line(0, 10)
        run.kernel(50, 100, launched=1)
        busy = host_us[number] if host_us else 100
        for step, length in enumerate(own):
            run.kernel(step * STEP_US + 500, length, launched=step * STEP_US + 2, name=NCCL, stream=20)
            run.call("cudaStreamSynchronize", step * STEP_US + busy, STEP_US - busy)
        ranks.append(run)
    return several(*ranks).totals


def test_the_rank_that_comes_last_in_every_step_is_late(tmp_path: Path) -> None:
    totals = late(tmp_path, (200, 210, 190), (20, 20, 20))
    assert (totals["late_rank"], totals["late_rank_ms"]) == (1, approx(0.18))


def test_this_rank_may_be_the_late_one(tmp_path: Path) -> None:
    totals = late(tmp_path, (20, 20, 20), (200, 210, 190), (120, 110, 130))
    assert (totals["late_rank"], totals["late_rank_ms"]) == (0, approx(0.14)), "the mean of both others"


def test_ranks_that_wait_in_turn_are_not_late(tmp_path: Path) -> None:
    totals = late(tmp_path, (200, 20, 200), (20, 210, 20))
    assert "late_rank" not in totals
    assert totals["collective_wait_ms"] > 0.1


def test_a_rank_that_is_hardly_last_in_one_step_is_not_late(tmp_path: Path) -> None:
    """Of two ranks and three steps, one is the last in all of them once in four times by chance."""
    totals = late(tmp_path, (200, 210, 25), (20, 20, 20))
    assert "late_rank" not in totals
    assert totals["collective_wait_ms"] > 0.1


@pytest.mark.parametrize("last", [0, 1])
def test_a_rank_is_not_late_whose_host_is_as_quick_as_that_of_the_rank_which_waits(
    last: int, tmp_path: Path
) -> None:
    """FSDP on two H100s, bound by its launches: one host was ahead by half an exchange, and its device waited
    in each of 60 for as long as the other host took to queue it: 17.7 ms of a step of 18.9."""
    lengths = [(20.0, 20.0, 20.0), (200.0, 210.0, 190.0)]
    totals = late(tmp_path, *(lengths if last == 0 else lengths[::-1]), host_us=(950, 940))
    assert "late_rank" not in totals


def test_a_rank_is_late_by_no_more_than_the_others_could_be_quicker(tmp_path: Path) -> None:
    totals = late(tmp_path, (600, 610, 590), (20, 20, 20), (620, 610, 600), host_us=(100, 900, 700))
    assert (totals["late_rank"], totals["late_rank_ms"]) == (1, approx(0.3))


def test_ranks_that_exchanged_differently_are_not_compared(tmp_path: Path) -> None:
    other = of_rank(tmp_path / "ranks" / "1", [(100, 100)])
    totals = several(of_rank(tmp_path, [(100, 100), (500, 300)]), other).totals
    assert "collective_wait_ms" not in totals


def test_a_broken_trace_of_another_rank_costs_only_the_comparison(tmp_path: Path) -> None:
    other = of_rank(tmp_path / "ranks" / "1", [(100, 100)])
    run = of_rank(tmp_path, [(100, 100)])
    several(run, other)
    (other.folder / "trace.json").write_bytes(b"")
    assert "collective_wait_ms" not in several(run).totals


def test_gloo_exchanges_in_ranges_of_its_own_threads(tmp_path: Path) -> None:
    def gloo(folder: Path, length: float) -> KinetoRun:
        run = KinetoRun(folder, 1000, device=DeviceFacts("cpu", "", 1))
        run.line(0, 10)
        run.op("aten::mm", 0, 400)
        run.mark("gloo:all_reduce", 300, length, tid=99)
        return run

    totals = several(gloo(tmp_path, 400), gloo(tmp_path / "ranks" / "1", 50)).totals
    assert totals["exposed_communication_ms"] == pytest.approx(0.3, rel=0.05)
    assert totals["collective_wait_ms"] == pytest.approx(0.25, rel=0.05)
