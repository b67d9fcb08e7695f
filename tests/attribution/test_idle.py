"""The critical path over several streams, and whose fault an idle device is.

The runs are built by hand: there is no GPU here (see tests/kineto.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kineto import KinetoRun, approx, at_line, closed, ns


def test_overlap_of_two_streams_is_counted_once(tmp_path: Path) -> None:
    """A long kernel beside a short one that nothing waits for: the short one costs nothing."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(50, 800, launched=1, name="long")
    run.line(10, 11)
    run.kernel(100, 300, launched=11, name="beside", stream=20)
    profile = run.profile()
    assert at_line(profile, 11).device_ms == approx(0.3)
    assert at_line(profile, 11).step_ms == approx(at_line(profile, 11).idle_ms)
    assert at_line(profile, 10).step_ms - at_line(profile, 10).idle_ms == approx(0.8)
    assert closed(profile) == approx(1.0)


def test_the_critical_path_leads_through_what_was_waited_for(tmp_path: Path) -> None:
    """A | a reduction in another stream waits for A | C waits for the reduction; B runs beside it."""
    run = KinetoRun(tmp_path, 1000)
    for number, name, start, length, stream in (
        (10, "A", 0, 200, 7),
        (11, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 202, 400, 20),
        (12, "B", 200, 100, 7),
        (13, "C", 604, 396, 7),
    ):
        run.line(number - 10, number)
        run.kernel(start, length, launched=number - 9.5, name=name, stream=stream)
    profile = run.profile()
    assert at_line(profile, 12).device_ms == approx(0.1)
    assert at_line(profile, 12).step_ms < 0.003  # the 2 us before the reduction
    assert at_line(profile, 11).communication_ms == approx(0.4)
    assert at_line(profile, 11).step_ms == pytest.approx(0.4, abs=0.006)
    assert closed(profile) == approx(1.0)


@pytest.mark.parametrize("kind", ["loop", "sync", "loader"])
def test_planted_idle_time_lands_on_its_line(tmp_path: Path, kind: str) -> None:
    """300 us in which the device has nothing to do: in Python, after a sync, in the loader."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(2, 300, launched=1)
    if kind == "sync":
        run.line(10, 20)
        run.call("cudaStreamSynchronize", 11, 291)
    elif kind == "loader":
        run.line(302, 20)
        run.mark("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 302, 300)
    else:
        run.line(302, 20)
    run.line(602, 11)
    run.kernel(610, 390, launched=604)
    profile = run.profile()
    planted = at_line(profile, 20)
    assert planted.idle_ms == pytest.approx(0.3, rel=0.05)
    assert planted.step_ms == approx(planted.idle_ms)
    assert planted.sync_ms == approx(0.291 if kind == "sync" else 0)
    assert planted.loader_ms == (pytest.approx(0.3, rel=0.05) if kind == "loader" else 0)
    assert closed(profile) == approx(1.0)


def test_asynchronous_copies_are_not_syncs(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 200)
    run.line(0, 10)
    run.kernel(20, 100, launched=2, name="Memcpy HtoD (Pinned -> Device)", cat="gpu_memcpy", bytes=4096)
    profile = run.profile()
    line = at_line(profile, 10)
    assert line.sync_ms == 0
    assert line.copy_ms == approx(0.1)
    assert line.kernels[0].kind == "copy"
    assert line.kernels[0].bytes == 4096


def test_idle_time_is_what_the_unprofiled_step_leaves(tmp_path: Path) -> None:
    """Profiled: 400 busy, 600 idle. Unprofiled: 700. Kernel time stays, idle time becomes 300."""
    run = KinetoRun(tmp_path, 1000, timed_us=700)
    run.line(0, 10)
    run.line(200, 11)
    run.kernel(600, 400, launched=590)
    profile = run.profile()
    assert at_line(profile, 11).device_ms == approx(0.4)
    assert profile.totals["idle_ms"] == approx(0.3)
    assert profile.steps.slowdown == approx(1000 / 700)
    assert closed(profile) == approx(0.7)


def test_a_device_that_was_slower_under_the_profiler_may_be_shared(tmp_path: Path) -> None:
    """Twelve scripts of round 9 with equal steps shared their GPU, and were told that their steps differ."""
    run = KinetoRun(tmp_path, 1000, timed_us=700)
    run.line(0, 10)
    run.kernel(20, 900, launched=10)
    (note,) = [note for note in run.profile().notes if "busy for longer" in note]
    assert note.endswith("or the device was slower then (another process, or its clock rate)")


def test_replayed_graphs_are_unattributed_and_never_idle(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    call = run.call("cudaGraphLaunch", 5, 10)
    for at in range(4):
        run.replayed(20 + at * 200, 200, call, name=f"kernel{at}", **{"graph node id": at + 1})
    profile = run.profile()
    assert profile.unattributed.device_ms == approx(0.8)
    assert profile.unattributed.step_ms == approx(0.8)
    assert at_line(profile, 10).idle_ms == approx(0.2)
    assert any("CUDA graphs" in note for note in profile.notes)
    assert closed(profile) == approx(1.0)


def test_garbage_collections_are_timed_at_their_line(tmp_path: Path) -> None:

    run = KinetoRun(tmp_path, 1000, facts={"gc_ns": [[ns(400), ns(500)]]})
    run.line(0, 10)
    run.line(300, 11)
    run.kernel(900, 50, launched=890)
    assert at_line(run.profile(), 11).gc_ms == approx(0.1)


def test_the_wait_that_ends_the_capture_is_nobody_s(tmp_path: Path) -> None:
    """The script waits in line 10; after line 11, where the step ends, only the runner does."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(20, 100, launched=1)
    run.call("cudaDeviceSynchronize", 10, 120)
    run.line(200, 11)
    run.kernel(220, 750, launched=201)
    run.call("cudaDeviceSynchronize", 300, 690)
    profile = run.profile()
    assert at_line(profile, 10).sync_ms == approx(0.12)
    assert at_line(profile, 11).sync_ms == 0
    assert at_line(profile, 11).cpu_ms == approx(0.11)
    assert closed(profile) == approx(1.0)


def test_a_copy_to_pageable_memory_waits_in_its_own_call(tmp_path: Path) -> None:
    """The synchronization that follows finds all work done; a copy to pinned memory only queues."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(20, 500, launched=2)
    read = {"cat": "gpu_memcpy", "bytes": 4096}
    run.line(90, 11)
    call = run.call("cudaMemcpyAsync", 100, 430)
    run.replayed(520, 5, call, name="Memcpy DtoH (Device -> Pageable)", **read)
    run.call("cudaStreamSynchronize", 535, 5)
    run.line(600, 12)
    run.kernel(700, 5, launched=610, name="Memcpy DtoH (Device -> Pinned)", **read)
    profile = run.profile()
    assert at_line(profile, 11).sync_ms == approx(0.435)
    assert at_line(profile, 11).syncs == 1
    assert at_line(profile, 12).sync_ms == 0


def test_the_device_that_waited_for_the_capture_to_begin_was_not_idle(tmp_path: Path) -> None:
    """Two steps of 500 us of work, launched at once; before the first kernel 100 us in the loader. The host
    is 700 us ahead at the end: in a script that goes on like this, the device has no such gap. What a step
    without the profiler takes longer is the device's."""
    run = KinetoRun(tmp_path, 1100, timed_us=1050)
    run.line(0, 20)
    run.mark("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 98)
    run.line(100, 10)
    run.kernel(105, 495, launched=101)
    run.kernel(600, 500, launched=200)
    run.call("cudaDeviceSynchronize", 400, 699)
    profile = run.profile()
    assert at_line(profile, 20).step_ms == at_line(profile, 20).idle_ms == 0
    assert at_line(profile, 10).step_ms == approx(1.05)
    assert at_line(profile, 10).device_ms == approx(0.995)
    assert profile.totals["busy_ms"] == approx(1.05)
    assert closed(profile) == approx(1.05)


def test_a_gap_that_the_host_was_not_ahead_enough_for_stays(tmp_path: Path) -> None:
    """30 us ahead at the end, 100 us of nothing at the beginning: 70 us are the script's."""
    run = KinetoRun(tmp_path, 1100, timed_us=1070)
    run.line(0, 20)
    run.line(100, 10)
    run.kernel(105, 995, launched=101)
    run.call("cudaDeviceSynchronize", 1070, 30)
    profile = run.profile()
    assert at_line(profile, 20).idle_ms == pytest.approx(0.07, rel=0.1)
    assert closed(profile) == approx(1.07)


def test_a_gap_behind_a_wait_is_not_filled_by_the_step_before(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(2, 100, launched=1)
    run.call("cudaStreamSynchronize", 10, 92)
    run.line(102, 20)
    run.line(302, 11)
    run.kernel(305, 695, launched=303)
    run.call("cudaDeviceSynchronize", 310, 690)
    profile = run.profile()
    assert at_line(profile, 20).idle_ms == pytest.approx(0.2, rel=0.05)


def test_what_fills_the_gap_between_two_kernels_of_another_stream_costs_nothing(tmp_path: Path) -> None:
    """The second long kernel follows the first within a hand-over; the short one ran meanwhile."""
    run = KinetoRun(tmp_path, 1000)
    run.line(0, 10)
    run.kernel(0, 496, launched=1, name="first")
    run.line(10, 11)
    run.kernel(497.5, 3.5, launched=11, name="short", stream=20)
    run.line(20, 12)
    run.kernel(500, 500, launched=21, name="second")
    profile = run.profile()
    assert at_line(profile, 11).step_ms == approx(at_line(profile, 11).idle_ms)
    assert at_line(profile, 12).step_ms - at_line(profile, 12).idle_ms == approx(0.5025)
