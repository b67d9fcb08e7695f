"""What a host needs for a step by itself: what it waits for the device taken off."""

from __future__ import annotations

from pathlib import Path

from tests.kineto import AUTOGRAD, KinetoRun
from warpline.trace.alone import host_alone_ns
from warpline.trace.peers import peers


def test_waits_of_every_thread_are_not_the_hosts_work(tmp_path: Path) -> None:
    """Two steps of 500 us: 200 us of synchronizing, 100 on the backward thread, and a launch that waits for
    60 us beside quick ones of 4."""
    run = KinetoRun(tmp_path, 1000, 2)
    for at in range(10):
        run.call("cudaLaunchKernel", at * 10, 4)
    run.call("cudaLaunchKernel", 100, 64)
    run.call("cudaStreamSynchronize", 200, 200)
    run.call("cudaEventSynchronize", 600, 100, AUTOGRAD)
    run.call("cudaMemcpyAsync", 800, 4)
    assert host_alone_ns(run.trace()) == (1000 - 60 - 200 - 100) * 1000 / 2


def test_a_wait_counts_as_far_as_it_is_in_the_captured_steps(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.call("cudaLaunchKernel", 0, 4)
    run.call("cudaDeviceSynchronize", -50, 100)
    run.call("cudaDeviceSynchronize", 900, 500)
    assert host_alone_ns(run.trace()) == (1000 - 50 - 100) * 1000


def test_without_runtime_calls_it_is_not_known(tmp_path: Path) -> None:
    run = KinetoRun(tmp_path, 1000)
    run.op("aten::mm", 0, 400)
    assert host_alone_ns(run.trace()) is None


def test_another_ranks_host_is_read_from_the_text_of_its_trace(tmp_path: Path) -> None:
    """As from the columns."""
    other = KinetoRun(tmp_path / "ranks" / "1", 1000, 2)
    other.op("aten::mm", 0, 400)
    other.kernel(50, 100, launched=5)
    other.call("cudaStreamSynchronize", 200, 200)
    alone_ns = host_alone_ns(other.trace())
    (peer,) = peers(tmp_path)
    assert (peer.host_ns, peer.step_ns, len(peer.exchanges)) == (alone_ns, 500_000, 0)
    assert alone_ns == 400_000
