"""What the step's time goes to, of runs recorded on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.kineto import AUTOGRAD, MAIN, KinetoRun, approx
from warpline import pipeline
from warpline.model.report import Composition, Report
from warpline.wire.run import DeviceFacts


def of(run: Path) -> tuple[Report, Composition]:
    report = pipeline.report_of(run)
    assert report.composition is not None
    return report, report.composition


@pytest.mark.parametrize("name", ["loader-without-workers", "nccl", "quickstart"])
def test_the_parts_add_up_to_the_step(name: str, recorded: Callable[[str], Path]) -> None:
    report, parts = of(recorded(name))
    assert sum(asdict(parts).values()) == pytest.approx(report.steps.step_ms, rel=1e-9)
    assert min(asdict(parts).values()) >= 0


def test_the_device_works_as_long_as_the_report_says(recorded: Callable[[str], Path]) -> None:
    """Two ways of counting: the device's busy share, and the parts in which it works."""
    report, parts = of(recorded("loader-without-workers"))
    busy = parts.forward_ms + parts.backward_ms + parts.optimizer_ms + parts.communication_ms
    assert busy == pytest.approx(report.steps.step_ms * report.steps.device_busy_percent / 100, rel=1e-6)


def test_a_loader_in_the_training_process_is_most_of_its_step(recorded: Callable[[str], Path]) -> None:
    report, parts = of(recorded("loader-without-workers"))
    # The finding's exposed wait is found by the rule in its own way.
    (wait,) = (e.value for e in report.findings[0].evidence if e.metric == "exposed wait" and e.unit == "ms")
    assert parts.loader_ms == pytest.approx(wait, rel=0.2)
    assert parts.communication_ms == 0
    assert parts.backward_ms > parts.forward_ms > parts.optimizer_ms > 0


def test_exchanges_between_ranks_are_communication(recorded: Callable[[str], Path]) -> None:
    """At least where no computation runs beside them; at most all of them."""
    run = recorded("nccl")
    _, parts = of(run)
    totals = pipeline.profile_of(run).totals
    assert 0.99 * totals["exposed_communication_ms"] <= parts.communication_ms <= totals["communication_ms"]
    assert parts.optimizer_ms > 0


@pytest.mark.parametrize("on_gpu", [False, True])
def test_both_passes_in_an_optimizer_s_closure_are_not_the_optimizer(tmp_path: Path, on_gpu: bool) -> None:
    """`optimizer.step(closure)`, as Lightning trains: torch's range is around all of the step."""
    device = DeviceFacts("cuda", "NVIDIA H200", 1) if on_gpu else DeviceFacts("cpu", "a CPU", 1)
    run = KinetoRun(tmp_path, 1000, device=device)
    run.line(0, 10)
    run.mark("Optimizer.step#SGD.step", 0, 1000)
    for name, start, length, thread, numbers in (
        ("aten::mm", 0, 200, MAIN, {"seq": 5}),
        ("autograd::engine::evaluate_function: MmBackward0", 200, 500, AUTOGRAD, {"seq": 5, "fwd": 1}),
        ("aten::add_", 700, 300, MAIN, {}),
    ):
        run.op(name, start, length, thread, **numbers)
        if on_gpu:
            run.kernel(start, length, launched=start, tid=thread)
    parts = run.profile().composition
    assert parts is not None
    assert (parts.forward_ms, parts.backward_ms, parts.optimizer_ms) == (
        approx(0.2),
        approx(0.5),
        approx(0.3),
    )
