"""Copies in the host's memory that wait for torch's own threads to get a core, and steps that take longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import KinetoRun, approx, at_line
from warpline.attribution import attribute
from warpline.attribution.stalled import DIVIDED

WINDOW_US = 40_000
ROWS = 4 * DIVIDED  # of 4 bytes: 524 us at 1 GB/s


def recorded(folder: Path, threads: int = 16, batch_size: int | None = None) -> KinetoRun:
    """A step of 40 ms, with a kernel at line 10."""
    sites = [
        {
            "kind": "loader",
            "file": "train.py",
            "line": 1,
            "function": "<module>",
            "facts": {"batch_size": batch_size},
        }
    ]
    run = KinetoRun(folder, WINDOW_US, facts={"flags": {"threads": threads}, "sites": sites})
    run.line(0, 10)
    run.kernel(30_000, 100, launched=10)
    run.line(100, 11)
    return run


def copied(run: KinetoRun, us: float, **changed: Any) -> None:
    """A copy of ``ROWS`` floats in the host's memory that takes so long."""
    of: dict[str, Any] = {"rows": ROWS, "strides": [[1], [1], []], "types": ["float", "float", "Scalar"]}
    of |= changed
    size = [of["rows"]]
    strides = {"Input Strides": of["strides"]}
    run.op("aten::copy_", 200, us, dims=[size, size, []], types=of["types"], **strides)


def joined(run: KinetoRun, us: float, count: int, each: int, dims: list[Any]) -> None:
    """``count`` tensors of so many bytes that are joined."""
    run.op("aten::cat", 200, us, dims=dims, types=["TensorList", "Scalar"])
    run.memory(210, count * each, 0xABC, count * each, on_device=False)


def test_a_copy_that_takes_longer_than_memory_waits(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    copied(run, 8000)
    profile = run.profile()
    assert at_line(profile, 11).stalled_ms == approx(8 - ROWS * 4e-6)
    assert profile.totals["stalled_ms"] == approx(8 - ROWS * 4e-6)
    (note,) = [note for note in profile.notes if "memory needs" in note]
    assert note.startswith("copies in the host's memory take 7.48 ms a step more than memory needs")


@pytest.mark.parametrize(
    ("us", "threads", "changed"),
    [
        (500, 16, {}),  # as quick as memory
        (8000, 1, {}),  # there is nobody to wait for
        (8000, 16, {"rows": DIVIDED // 2}),  # one thread copies it: if it waits, then for something else
        (8000, 16, {"strides": [[1], [3], []]}),  # another order is slow by itself
        (8000, 16, {"types": ["a type", "float", "Scalar"]}),
    ],
)
def test_other_copies(tmp_path: Path, us: float, threads: int, changed: dict[str, Any]) -> None:
    run = recorded(tmp_path, threads)
    copied(run, us, **changed)
    profile = run.profile()
    assert profile.totals["stalled_ms"] == 0
    assert not any("memory needs" in note for note in profile.notes)


def test_a_copy_to_the_device_waits_for_that(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    copied(run, 8000)
    run.call("cudaMemcpyAsync", 300, 7000)
    assert run.profile().totals["stalled_ms"] == 0


@pytest.mark.parametrize(
    ("dims", "batch_size"),
    [
        ([[3, 128, 128] * 16, []], None),  # the sizes say that there are 16
        ([[], []], 16),  # too many sizes to be recorded: as many as a batch has
    ],
)
def test_samples_that_are_joined_wait_as_well(
    tmp_path: Path, dims: list[Any], batch_size: int | None
) -> None:
    run = recorded(tmp_path, batch_size=batch_size)
    joined(run, 20_000, 16, 200_000, dims)
    assert at_line(run.profile(), 11).stalled_ms == approx(20 - 3.2 - 16 * 0.005)


def test_many_small_samples_are_joined_slowly(tmp_path: Path) -> None:
    """One thread does it: none is large enough to be divided."""
    run = recorded(tmp_path, batch_size=4096)
    joined(run, 20_000, 4096, 800, [[], []])
    assert run.profile().totals["stalled_ms"] == 0


def test_an_unknown_number_of_samples_says_nothing(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    joined(run, 20_000, 16, 200_000, [[], []])
    assert run.profile().totals["stalled_ms"] == 0


@pytest.mark.parametrize(("waited", "told"), [(200_000, ["20 %"]), (50_000, []), (None, [])])
def test_threads_that_waited_in_the_timing_window_are_noted(
    tmp_path: Path, waited: int | None, told: list[str]
) -> None:
    run = recorded(tmp_path)
    run.facts["cores"] = {"window_ns": 1_000_000, "used_ns": 900_000, "helper_queued_ns": waited}
    notes = [note for note in run.profile().notes if "waited for a core for" in note]
    assert [word in note for note, word in zip(notes, told, strict=True)] == [True] * len(told)


@pytest.mark.parametrize(
    ("collected_ms", "reason"),
    [(9, "possible reasons: an evaluation, or a busy machine"), (8000, "Python collected all garbage")],
)
def test_a_long_timed_step_has_its_reason(tmp_path: Path, collected_ms: int, reason: str) -> None:
    run = KinetoRun(tmp_path, 1000, facts={"gc_full_timed_ns": [collected_ms * 1_000_000]})
    run.line(0, 10)
    run.op("aten::mm", 10, 50)
    trace = run.trace()
    timed = (*(1_000_000_000,) * 9, 9_500_000_000)
    slow = replace(trace, manifest=replace(trace.manifest, timed_ns=timed))
    (note,) = (one for one in attribute(slow).notes if "more than twice as long" in one)
    assert reason in note


@pytest.mark.parametrize(("full_ms", "step_ms", "said"), [((8000,), 1050, 1), ((8000, 20), 1850, 0)])
def test_one_full_collection_is_no_part_of_the_step(
    tmp_path: Path, full_ms: tuple[int, ...], step_ms: float, said: int
) -> None:
    """Of several, the mean step has its share."""
    run = KinetoRun(tmp_path, 1000, facts={"gc_full_timed_ns": [each * 1_000_000 for each in full_ms]})
    run.facts["gc_full_steps_ns"] = [0, 8_000_000_000] + [0] * 8
    run.line(0, 10)
    run.op("aten::mm", 10, 50)
    trace = run.trace()
    timed = (1_000_000_000, 9_500_000_000, *(1_000_000_000,) * 8)
    found = attribute(replace(trace, manifest=replace(trace.manifest, timed_ns=timed)))
    assert found.steps.step_ms == approx(step_ms)
    assert sum(line.step_ms for line in found.lines) == approx(step_ms)
    assert sum("which is left out" in note for note in found.notes) == said
    assert sum("Python collected all garbage" in note for note in found.notes) == 1 - said
