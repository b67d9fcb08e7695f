"""Predictions from the unchanged trace against the truth of the changed program.

The traces are synthetic (see ``machine``): no GPU is at hand where these tests run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from tests.simulate.machine import FILE, Machine, places, run, simulation, trace
from warpline.model.change import (
    Change,
    CompiledCalls,
    Fuse,
    FuseOptimizer,
    KeptSamples,
    LargerBatch,
    LoaderWorkers,
    MatmulRate,
    OverlapCopies,
    PadProducts,
    RemoveLaunches,
    RemoveSyncs,
    Scale,
    Together,
)
from warpline.model.costs import value
from warpline.simulate.simulation import Simulation

Program = Callable[[Machine], None]
MM = [[4096, 4096], [4096, 4096]]


def device_bound(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::mm", 10, 400, MM)
        m.op(11, "aten::add", 8, 100)
        m.op(11, "aten::mul", 8, 100)


def launch_bound(m: Machine) -> None:
    for _ in range(300):
        m.op(10, "aten::add", 20, 4)


def with_sync(m: Machine) -> None:
    for _ in range(50):
        m.op(10, "aten::mm", 30, 60, MM)
    m.sync(12)
    m.work(13, 1500)


def loading(m: Machine) -> None:
    m.load(5, 9000)
    m.copy(6, 500)
    for _ in range(50):
        m.op(10, "aten::mm", 20, 40, MM)


def on_cpu(m: Machine) -> None:
    m.load(5, 4000)
    m.op(10, "aten::mm", 5000)
    m.op(11, "aten::mul", 800)
    m.op(11, "aten::add", 600)
    m.work(12, 300)


PROGRAMS = (device_bound, launch_bound, with_sync, loading)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("slowed", [1.0, 1.5, 2.0])
def test_an_unchanged_step_takes_as_long_as_it_was_measured(program: Program, slowed: float) -> None:
    found, truth = simulation(program, slowed=slowed)
    assert found.replayed_ms == pytest.approx(truth, rel=0.03)


def test_an_unchanged_step_on_a_cpu_does_too() -> None:
    found, truth = simulation(on_cpu, on_gpu=False, slowed=1.7)
    assert found.replayed_ms == pytest.approx(truth, rel=0.001)


def uneven(m: Machine) -> None:
    for _ in range(200):
        m.op(10, "aten::add", 12, 4)
        m.work(11, 0.1)
    m.op(12, "aten::cat", 4000, 50)


def test_what_each_record_cost_is_taken_off_where_it_fell() -> None:
    # All that the profiler added lies in the many short ops; the long one was not slowed.
    found, truth = simulation(uneven, added=6.0)
    assert found.replayed_ms == pytest.approx(truth, rel=0.03)
    without_long = found.predict(Scale(AT[12], host=0.0))
    assert without_long is not None
    assert without_long.step_ms == pytest.approx(truth - 4, rel=0.1)


def waiting_for_the_device(m: Machine) -> None:
    for _ in range(200):
        m.op(10, "aten::mm", 40, 150, MM)


def no_more(m: Machine) -> None:
    for _ in range(200):
        m.op(10, "aten::mm", 40, 15, MM)


@pytest.mark.parametrize("added", [4.0, 12.0, 30.0])
def test_what_a_device_bound_step_hides_is_known_from_the_measured_cost(added: float) -> None:
    """Ten times quicker products leave the host's own time, without what the records cost."""
    found, _ = simulation(waiting_for_the_device, added=added, op_record_us=added)
    quick = found.predict(Scale(AT[10], device=0.1))
    _, truth = run(no_more)
    assert quick is not None
    assert quick.step_ms == pytest.approx(truth, rel=0.2)  # 0.82 is taken for the host's scale


def turned(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::cudnn_convolution", 10, 200, kernel="nchwToNhwcKernel")
        m.op(10, "aten::cudnn_convolution", 10, 400, kernel="implicit_gemm")


def not_turned(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::cudnn_convolution", 10, 400, kernel="implicit_gemm")


def test_compiled_convolutions_are_not_turned_for_the_tensor_cores() -> None:
    found, _ = simulation(turned)
    compiled = found.predict(RemoveLaunches(AT[10], fuse=True))
    _, truth = run(not_turned)
    assert compiled is not None
    assert compiled.step_ms == pytest.approx(truth, rel=0.03)


def layers(norm: str) -> Callable[[Machine], None]:
    def made(m: Machine) -> None:
        for _ in range(30):
            for name in ("aten::cudnn_convolution", norm, "aten::relu"):
                m.op(10, name, 40, 4)

    return made


def test_a_norm_of_a_batch_stays_several_kernels_when_compiled() -> None:
    """Its statistics are complete before what follows is computed; other operators merge."""
    left = {}
    for norm in ("aten::cudnn_batch_norm", "aten::add"):
        found, before = simulation(layers(norm))
        compiled = found.predict(RemoveLaunches(AT[10], fuse=True))
        assert compiled is not None
        left[norm] = compiled.step_ms
    launch_ms = before / 90
    library_ms = 30 * value("compiled-library") * launch_ms
    one_ms = 30 * value("compiled-kernel") * launch_ms
    assert left["aten::add"] == pytest.approx(library_ms + one_ms, rel=0.05)
    assert left["aten::cudnn_batch_norm"] == pytest.approx(
        library_ms + value("compiled-norm") * one_ms, rel=0.05
    )


def test_a_graph_costs_the_host_its_calls_and_nothing_for_its_kernels() -> None:
    found, before = simulation(launch_bound)
    graph = found.predict(Together((RemoveLaunches(AT[10], fuse=False), CompiledCalls(AT[10], 1, 10, True))))
    assert graph is not None
    launches = value("graph-call") + 10 * value("graph-parameter")
    device_ms = 300 * (0.004 + 0.001)  # and the gaps between its kernels
    assert graph.step_ms == pytest.approx(max(launches * before / 300, device_ms), rel=0.2)


def disturbed(m: Machine) -> None:
    """Another process has the device in between: a tenth of the narrow kernels takes ten times as long."""
    for at in range(60):
        m.op(11, "aten::add", 4, 500 if at % 10 == 3 else 50)
        m.op(11, "aten::mul", 4, 100)


def test_the_kernel_that_stays_is_the_usually_widest_and_not_one_that_was_held_up() -> None:
    found, _ = simulation(disturbed)
    fused = found.predict(Fuse(AT[11]))
    assert fused is not None
    assert fused.step_ms == pytest.approx(60 * 0.1, rel=0.1)


def test_calls_of_compiled_code_cost_the_host_and_make_it_an_estimate() -> None:
    found, before = simulation(launch_bound)
    once = found.predict(Together((Fuse(AT[10]), CompiledCalls(AT[10], 1))))
    often = found.predict(Together((Fuse(AT[10]), CompiledCalls(AT[10], 100))))
    assert once is not None
    assert often is not None
    assert once.basis == "estimate"
    added_ms = 99 * value("compiled-call") * before / 300
    assert often.step_ms - once.step_ms == pytest.approx(added_ms, rel=0.05)


def without_sync(m: Machine) -> None:
    for _ in range(50):
        m.op(10, "aten::mm", 30, 60, MM)
    m.work(13, 1500)


def no_loader(m: Machine) -> None:
    m.copy(6, 500)
    for _ in range(50):
        m.op(10, "aten::mm", 20, 40, MM)


def loading_pinned(m: Machine) -> None:
    m.load(5, 9000)
    m.copy(6, 500, waits=False)
    for _ in range(50):
        m.op(10, "aten::mm", 20, 40, MM)


def fused(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::mm", 10, 400, MM)
        m.op(11, "aten::mul", 8, 100)


def half(m: Machine) -> None:
    for _ in range(20):
        m.op(10, "aten::mm", 10, 200, MM)
        m.op(11, "aten::add", 8, 100)
        m.op(11, "aten::mul", 8, 100)


def between_products(m: Machine) -> None:
    for _ in range(60):
        m.op(9, "aten::mm", 25, 4, MM)
        for name in ("aten::add", "aten::mul", "aten::tanh"):
            m.op(11, name, 20, 4)


def fused_between_products(m: Machine) -> None:
    for _ in range(60):
        m.op(9, "aten::mm", 25, 4, MM)
        m.op(11, "aten::fused", 20, 4)


def one_launch(m: Machine) -> None:
    m.op(10, "aten::add", 20 * value("compiled-kernel"), 4)


def slower_host(m: Machine) -> None:
    for _ in range(300):
        m.op(10, "aten::add", 15, 4)


AT = {line: ((FILE, line),) for line in range(1, 20)}


@pytest.mark.parametrize("slowed", [1.0, 1.8])
@pytest.mark.parametrize(
    ("program", "change", "after"),
    [
        (with_sync, RemoveSyncs(AT[12]), without_sync),
        (loading, LoaderWorkers(16, AT[5]), no_loader),
        (loading, KeptSamples(0.0, AT[5]), no_loader),
        (loading, OverlapCopies(AT[6]), loading_pinned),
        (device_bound, Fuse(AT[11], 1), fused),
        (device_bound, Fuse(AT[11], keep=0.5), fused),
        (device_bound, Fuse((*AT[10], *AT[11]), keep=0.5, shares=(0.0, 1.0)), fused),
        (device_bound, Fuse((*AT[10], *AT[11])), fused),
        (device_bound, MatmulRate("tf32", AT[10], factor=2.0), half),
        (device_bound, Scale(AT[10], device=0.5), half),
        (launch_bound, RemoveLaunches(AT[10]), one_launch),
        (between_products, Fuse(AT[11]), fused_between_products),
        (between_products, Fuse(AT[11], bytes=60 * 4e-6 * 3.84e12), fused_between_products),
    ],
)
def test_a_change_is_predicted(program: Program, change: Change, after: Program, slowed: float) -> None:
    found, _ = simulation(program, slowed=slowed)
    predicted = found.predict(change)
    _, truth = run(after)
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_kept_samples_takes_what_was_tried(workers: int) -> None:
    found, truth = simulation(on_cpu, on_gpu=False, workers=workers)
    left = [found.predict(KeptSamples(batch_ms, AT[5])) for batch_ms in (0.0, 1.5)]
    assert left[0] is not None and left[1] is not None
    assert left[1].step_ms - left[0].step_ms == pytest.approx(1.5)
    assert left[0].step_ms < 0.7 * truth


def test_a_hot_kernel_hidden_behind_the_host_is_worth_nothing() -> None:
    found, _ = simulation(launch_bound)
    predicted = found.predict(Scale(AT[10], device=0.1))
    assert predicted is not None
    assert predicted.speedup == pytest.approx(1.0, abs=0.02)


def test_a_hot_line_hidden_behind_the_loader_is_worth_nothing() -> None:
    def waiting(m: Machine) -> None:
        m.load(5, 5000)
        m.op(10, "aten::mm", 3000)

    found, truth = simulation(waiting, on_gpu=False, workers=2)
    predicted = found.predict(Scale(AT[10], device=0.2))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.05)
    more = found.predict(LoaderWorkers(8, AT[5], present=2))
    assert more is not None
    assert more.step_ms < 0.6 * truth


def taking(m: Machine) -> None:
    m.load(5, 900)
    m.op(10, "aten::mm", 30, 6000, MM)


@pytest.mark.parametrize(
    ("told", "gains"),
    [
        ({}, False),  # as the capture alone says it
        ({"wait_ms": 0.2}, True),  # a profiled host takes longer to take a batch
        ({"wait_ms": 0.9}, False),
        ({"wait_ms": 0.9, "batch_ms": 8.0}, True),  # two workers keep up
        ({"wait_ms": 0.9, "batch_ms": 13.0}, False),
    ],
)
def test_workers_set_the_pace_only_where_they_do_not_keep_up(told: dict[str, float], gains: bool) -> None:
    found, truth = simulation(taking, workers=2, **told)
    predicted = found.predict(Scale(AT[10], device=0.5))
    assert predicted is not None
    assert (predicted.step_ms < 0.6 * truth) == gains


@pytest.mark.parametrize(
    ("told", "gains"), [({}, True), ({"batch_ms": 8.0}, True), ({"batch_ms": 13.0}, False)]
)
def test_workers_set_the_pace_though_they_keep_up_with_a_profiled_step(
    told: dict[str, float], gains: bool
) -> None:
    """The profiler made the captured steps so long that batches were ready: timed steps waited for them."""

    def ready(m: Machine) -> None:
        m.load(5, 100)
        m.op(10, "aten::mm", 30, 6000, MM)
        m.sync(11)

    found, truth = simulation(ready, workers=2, wait_ms=0.9, **told)
    predicted = found.predict(Scale(AT[10], device=0.5))
    assert predicted is not None
    assert (predicted.step_ms < 0.6 * truth) == gains


def test_a_pageable_copy_holds_the_host_although_its_call_returns_first() -> None:
    """The host is busy before the copy, so all of the wait for it could be saved: a third of the step."""

    def copied(waits: bool) -> Program:
        def program(m: Machine) -> None:
            m.work(5, 12_000)
            m.copy(6, 6_000, waits)
            m.op(10, "aten::mm", 20, 3_000, MM)

        return program

    found, _ = simulation(copied(waits=True))
    predicted = found.predict(OverlapCopies(AT[6]))
    _, truth = run(copied(waits=False))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.2)


def test_the_gain_of_workers_is_that_of_a_step_without_waits_for_cores() -> None:
    """A batch takes 30 ms, 24 of which are waits for cores; the device needs 4 ms."""

    def program(us: float) -> Program:
        def loaded(m: Machine) -> None:
            m.load(5, us)
            m.op(10, "aten::mm", 1000, 4000, MM)
            m.sync(12)

        return loaded

    found, _ = simulation(program(30_000))
    predicted = found.predict(LoaderWorkers(4, AT[5], stalled_ms=24))
    (_, alone), (_, after) = run(program(6000)), run(program(100))
    assert predicted is not None
    assert predicted.speedup == pytest.approx(alone / after, rel=0.1)
    beside = found.predict(LoaderWorkers(16, AT[5]))
    assert beside is not None and beside.speedup > 5


def test_a_copy_that_is_not_waited_for_makes_no_call_that_waits() -> None:
    """100 columns from pinned memory, each copied to an idle device and waited for."""

    def columns(waits: bool) -> Program:
        def program(m: Machine) -> None:
            for _ in range(100):
                m.copy(6, 4, waits=False)
                if waits:
                    m.sync(6)
            m.op(10, "aten::mm", 1000, 100, MM)

        return program

    found, _ = simulation(columns(waits=True))
    predicted = found.predict(OverlapCopies(AT[6]))
    _, truth = run(columns(waits=False))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.15)


def test_taking_a_batch_costs_no_more_than_in_the_timed_steps() -> None:
    """The captured steps began an epoch: 5 ms for each batch, which the timed steps have in 300 us."""

    def program(us: float) -> Program:
        def taken(m: Machine) -> None:
            m.load(5, us)
            m.sync(6)
            m.work(7, 2000)
            m.op(10, "aten::mm", 40, 6000)

        return taken

    def quicker(m: Machine) -> None:
        m.load(5, 300)
        m.work(7, 2000)
        m.op(10, "aten::mm", 40, 6000)

    machine, _ = run(program(5000))
    _, truth = run(program(300))
    seen = trace(machine, truth, workers=4, wait_ms=0.3)
    predicted = Simulation(seen, places(seen)).predict(RemoveSyncs(AT[6]))
    _, after = run(quicker)
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(after, rel=0.05)


def test_taking_a_batch_from_workers_is_no_wait_beside_a_long_wait_for_the_device() -> None:
    """300 us for a batch are most of the host's own time and 3 % of the step: the device sets the pace."""

    def device_at(us: float) -> Program:
        def program(m: Machine) -> None:
            m.load(5, 300)
            m.op(10, "aten::mm", 40, us)
            m.sync(12)

        return program

    found, _ = simulation(device_at(9000), workers=2)
    predicted = found.predict(Scale(AT[10], device=0.2))
    _, truth = run(device_at(1800))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.05)


def test_one_fix_makes_room_for_the_next() -> None:
    found, _ = simulation(on_cpu, on_gpu=False)
    loader = LoaderWorkers(8, AT[5])
    alone, other = found.predict(loader), found.predict(Fuse(AT[11]))
    both = found.predict(Together((loader, Fuse(AT[11]))))
    assert alone is not None and other is not None and both is not None
    assert both.step_ms < min(alone.step_ms, other.step_ms)


def test_more_workers_than_cores_do_not_help() -> None:
    found, _ = simulation(on_cpu, on_gpu=False, cores=2)
    few, many = found.predict(LoaderWorkers(2, AT[5])), found.predict(LoaderWorkers(64, AT[5]))
    assert few is not None
    assert many == few


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 2), (4, 4), (2, 4), (16, 16)])
def test_workers_gain_nothing_on_a_cpu_whose_cores_the_operators_use(cores: int, threads: int) -> None:
    found, truth = simulation(on_cpu, on_gpu=False, cores=cores, threads=threads)
    predicted = found.predict(LoaderWorkers(cores, AT[5]))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.001)
    waiting = found.predict(LoaderWorkers(cores, AT[5], waiting=True))
    assert waiting is not None
    assert (waiting.step_ms < 0.8 * truth) == (cores > 1)


@pytest.mark.parametrize(("cores", "threads", "loaded_ms"), [(4, 2, 4.5), (16, 8, 9 / 8), (4, 3, 9.0)])
def test_workers_on_a_cpu_have_the_cores_that_the_operators_leave(
    cores: int, threads: int, loaded_ms: float
) -> None:
    def slow_loading(m: Machine) -> None:
        m.load(5, 9000)
        m.op(10, "aten::mm", 800)

    found, _ = simulation(slow_loading, on_gpu=False, cores=cores, threads=threads)
    predicted = found.predict(LoaderWorkers(cores, AT[5]))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(loaded_ms, rel=0.1)


def test_workers_use_the_core_of_a_single_thread_that_waits_for_them() -> None:
    def slow_loading(m: Machine) -> None:
        m.load(5, 9000)
        m.op(10, "aten::mm", 800)

    found, _ = simulation(slow_loading, on_gpu=False, cores=2, threads=1)
    predicted = found.predict(LoaderWorkers(2, AT[5]))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx((9 + 0.8) / 2, rel=0.01), "two cores share all work"


def test_tf32_is_predicted_from_the_rates_of_the_device() -> None:
    found, truth = simulation(device_bound, peaks={"fp32": 50e12, "tf32": 300e12, "bytes_per_s": 4e12})
    predicted = found.predict(MatmulRate("tf32", AT[10]))
    assert predicted is not None
    kernels = 20 * (400 / 6 + 200) / 1000
    assert predicted.step_ms == pytest.approx(kernels, rel=0.1)
    assert predicted.speedup == pytest.approx(truth / predicted.step_ms)


def test_what_lies_between_the_products_moves_fewer_bytes_under_autocast() -> None:
    """Also at lines without a product, and in copies, where the tensors of the line are known."""

    def with_copies(m: Machine) -> None:
        device_bound(m)
        for _ in range(20):
            m.op(11, "aten::copy_", 8, 100)

    found, truth = simulation(with_copies)
    every = MatmulRate("bf16", AT[10], factor=1.0, elementwise=True, weights=True)
    alone, both = (found.predict(replace(every, between=one)) for one in ((), ((AT[11][0], 0.5),)))
    assert alone is not None
    assert alone.step_ms == pytest.approx(truth, rel=0.02)
    assert both is not None
    saved_ms = 20 * 3 * 100 * (1 - value("autocast-bytes")) / 1000
    assert both.step_ms == pytest.approx(truth - saved_ms, rel=0.02)


def test_padded_products_gain_once_they_are_in_that_precision() -> None:
    def two_sizes(m: Machine) -> None:
        for _ in range(20):
            m.op(10, "aten::mm", 10, 400, ((64, 57), (57, 64)))
            m.op(10, "aten::mm", 10, 400, ((64, 64), (64, 64)))

    found, truth = simulation(two_sizes)
    padding = PadProducts(57, "bf16", 0.25, AT[10])
    half, rounded = (MatmulRate(to, AT[10], factor=2.0) for to in ("bf16", "tf32"))
    alone, before, after, other = (
        found.predict(Together(some))
        for some in ((padding,), (padding, half), (half, padding), (rounded, padding))
    )
    assert alone is not None and before is not None and after is not None and other is not None
    assert alone.step_ms == pytest.approx(truth, rel=0.02)
    assert other.step_ms == pytest.approx(truth / 2, rel=0.05)
    assert after.step_ms == before.step_ms == pytest.approx(truth * (0.25 / 4 + 1 / 4), rel=0.05)


def test_a_fused_optimizer_leaves_the_bytes_and_takes_the_launches() -> None:
    found, truth = simulation(launch_bound)
    predicted = found.predict(FuseOptimizer(AT[10]))
    assert predicted is not None
    assert predicted.step_ms < 0.2 * truth


def test_what_cannot_be_said_is_not_said() -> None:
    found, _ = simulation(on_cpu, on_gpu=False)
    assert found.predict(MatmulRate("bf16")) is None


def test_a_place_that_was_never_seen_changes_nothing() -> None:
    found, truth = simulation(device_bound)
    predicted = found.predict(Scale((("/other.py", 1),), device=0.0, host=0.0))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.03)


def test_workers_that_keep_several_cores_busy() -> None:
    """Of four cores the step leaves two: room for one worker that keeps both of them busy, or for two."""
    found, truth = simulation(on_cpu, on_gpu=False, cores=4, threads=2)
    single, double = (found.predict(LoaderWorkers(3, AT[5], cores=cores)) for cores in (1, 2))
    none = found.predict(LoaderWorkers(3, AT[5], cores=4))
    assert single is not None and double is not None and none is not None
    assert single.step_ms == pytest.approx(truth - 4, rel=0.05)
    assert double.step_ms == pytest.approx(truth - 4, rel=0.05), "it keeps up"
    assert none.step_ms == pytest.approx(truth)


def test_workers_that_wait_may_be_more_than_the_cores() -> None:
    """Each waits for nine tenths of its time: 8 of them keep up, which need most of one core."""

    def slow_store(m: Machine) -> None:
        m.load(5, 9000)
        m.op(10, "aten::mm", 1500)

    found, _ = simulation(slow_store, on_gpu=False, cores=2, threads=2)
    few, many = (found.predict(LoaderWorkers(8, AT[5], waiting=True, cores=cores)) for cores in (1, 0.1))
    assert few is not None and many is not None
    assert few.step_ms == pytest.approx((1.5 + 9) / 2, rel=0.1)
    assert many.step_ms < 0.5 * few.step_ms


@pytest.mark.parametrize("on_gpu", [True, False])
def test_of_python_between_operators_another_share_may_stay(on_gpu: bool) -> None:
    def program(m: Machine) -> None:
        for _ in range(200):
            m.op(10, "aten::add", 20, 4)
            m.work(10, 10)

    found, truth = simulation(program, on_gpu=on_gpu)
    stays = found.predict(Fuse(AT[10], keep=1.0, keep_host=1.0))
    goes = found.predict(Fuse(AT[10], keep=1.0, keep_host=1.0, keep_between=0.25))
    assert stays is not None and goes is not None
    assert stays.step_ms == pytest.approx(truth, rel=0.03)
    assert goes.step_ms == pytest.approx(truth - 0.75 * 200 * 0.010, rel=0.03)


@pytest.mark.parametrize("on_gpu", [True, False])
def test_a_part_of_a_line_gains_no_more_than_that_part(on_gpu: bool) -> None:
    """A line of a framework has the whole step, and a tenth of that is to be fused."""

    def program(m: Machine) -> None:
        for _ in range(20):
            m.op(10, "aten::mm", 100, 100, MM)
            m.op(10, "aten::add", 100, 100)
            m.op(10, "aten::mul", 100, 100)

    found, truth = simulation(program, on_gpu=on_gpu)
    whole, part = found.predict(Fuse(AT[10])), found.predict(Fuse(AT[10], shares=(0.1,)))
    assert whole is not None and part is not None
    assert truth - part.step_ms == pytest.approx(0.1 * (truth - whole.step_ms), rel=0.1)


def test_what_a_fix_leaves_of_another_ones_lines() -> None:
    found, _ = simulation(on_cpu, on_gpu=False)
    assert found.left(Scale(AT[11], 0.25, 0.5), Scale(AT[11])) == pytest.approx(0.25, rel=0.01)
    assert found.left(Scale(AT[11], 0.25, 0.5), Scale(AT[10])) == 1
    # Half of the lines' host time is left of each batch, and all of its operators.
    assert found.left(LargerBatch(2), Scale(AT[12])) == pytest.approx(0.5, rel=0.01)
    assert found.left(LargerBatch(2), Scale(AT[10])) == pytest.approx(1, rel=0.01)
    assert 0.9 < found.left(LargerBatch(2), LargerBatch(2)) < 1


def test_parts_of_one_line_add_up() -> None:
    """Two findings that take half of a line each leave nothing of it together, and more of it in turn."""
    found, truth = simulation(on_cpu, on_gpu=False)
    each = found.predict(Scale(AT[10], 0.5, 0.5, apart=True))
    both = found.predict(Together((Scale(AT[10], 0.5, 0.5, apart=True),) * 2))
    three = found.predict(Together((Scale(AT[10], 0.5, 0.5, apart=True),) * 3))
    in_turn = found.predict(Together((Scale(AT[10], 0.5, 0.5),) * 2))
    assert each is not None and both is not None and three is not None and in_turn is not None
    assert each.step_ms == pytest.approx(truth - 2.5, rel=0.01)
    assert both.step_ms == pytest.approx(truth - 5, rel=0.01)
    assert three.step_ms == both.step_ms
    assert in_turn.step_ms == pytest.approx(truth - 3.75, rel=0.01)


@pytest.mark.parametrize("slots", [2, 4])
def test_a_wait_for_an_old_event_does_not_take_the_place_of_a_removed_wait(slots: int) -> None:
    """Page-locked slots that are filled in turn, each once its last copy is over."""

    def program(machine: Machine, reads: bool = True) -> None:
        slot = len(machine.steps) % slots
        machine.wait(2, slot)
        machine.work(3, 4_000)
        machine.copy(4, 100, waits=False)
        machine.record(5, slot)
        machine.op(6, "aten::mm", 50, 3_000)
        if reads:
            machine.sync(12)

    simulated, truth = simulation(program)
    assert truth == pytest.approx(7.2, rel=0.05)
    without = partial(program, reads=False)
    predicted = simulated.predict(RemoveSyncs(AT[12]))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(run(without)[1], rel=0.05)


def test_a_wait_for_the_event_just_recorded_waits_for_all_work() -> None:
    def program(machine: Machine) -> None:
        machine.op(6, "aten::mm", 50, 3_000)
        machine.sync(12)
        machine.record(7, 0)
        machine.wait(8, 0)
        machine.work(3, 4_000)

    simulated, truth = simulation(program)
    predicted = simulated.predict(RemoveSyncs(AT[12]))
    assert predicted is not None
    assert predicted.step_ms == pytest.approx(truth, rel=0.02)
