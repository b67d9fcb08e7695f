"""Tracebacks that autograd stores under anomaly detection: when, and as if nothing noted them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.capture.launching import PYTHONS, Captured, request, write
from tests.kineto import closed
from warpline import attribution, trace
from warpline.capture.runner.lines.locations import Locations
from warpline.capture.runner.lines.tracing import Tracing
from warpline.capture.runner.waits.tracebacks import MODULE, Tracebacks

SCRIPT = """\
import torch

def energy(layers, x):
    for layer in layers:
        x = layer(x).tanh()
    return x.square().sum()

torch.manual_seed(0)
layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(10))
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
x = torch.randn(4, 8, requires_grad=True)
with torch.autograd.detect_anomaly():
    for step in range(400):
        value = energy(layers, x)
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        loss = slope.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


class Lines:
    """Line records that say when they pause."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pause(self) -> bool:
        self.said.append("pause")
        return True

    def resume(self) -> None:
        self.said.append("resume")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    import traceback

    made: Any = ModuleType(MODULE)
    made.format_stack = lambda: traceback.format_list(traceback.extract_stack()[:-1])
    monkeypatch.setitem(sys.modules, MODULE, made)
    return made  # type: ignore[no-any-return]


def test_it_is_what_it_would_be_without_us(module: Any) -> None:
    noted, lines, original = Tracebacks(), Lines(), module.format_stack
    noted.start(lines)  # type: ignore[arg-type]
    found, expected = module.format_stack(), original()
    assert [one.split("\n")[1:] for one in found[:-1]] == [one.split("\n")[1:] for one in expected[:-1]]
    assert Path(__file__).name in found[-1], "the line that asks comes last"
    assert lines.said == ["pause", "resume"]
    (span,) = noted.spans
    assert span[0] < span[1]
    noted.stop()
    assert module.format_stack is original


def test_an_error_is_the_callers(module: Any) -> None:
    def fail() -> list[str]:
        raise RuntimeError("no stack")

    module.format_stack, lines, noted = fail, Lines(), Tracebacks()
    noted.start(lines)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="no stack"):
        module.format_stack()
    assert lines.said == ["pause", "resume"]
    noted.stop()


def test_what_is_no_stack_of_ours_stays(module: Any) -> None:
    """As under fx, which puts the stack of a graph's node there."""
    module.format_stack, noted = (lambda: ["of a node"]), Tracebacks()
    noted.start(Lines())  # type: ignore[arg-type]
    assert module.format_stack() == ["of a node"]
    noted.stop()


def test_without_the_module_there_is_nothing_to_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    noted = Tracebacks()
    noted.start(Lines())  # type: ignore[arg-type]
    noted.stop()
    assert noted.spans == []


def test_a_trace_function_of_the_scripts_is_not_paused() -> None:
    before = sys.gettrace()
    tracing = Tracing(Locations.__new__(Locations))
    tracing.running = True
    try:
        sys.settrace(None)
        assert not tracing.pause(), "this thread is not recorded"
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("python", PYTHONS)
def test_each_node_of_a_captured_step_has_one(tmp_path: Path, python: str) -> None:
    captured = Captured(request(write(tmp_path, SCRIPT), python), tmp_path)
    seen = trace.read(captured.run)
    profile = attribution.attribute(seen)
    low, high = seen.window_ns
    stored = [one for one in seen.facts.traceback_ns or () if low <= one[0] and one[1] <= high]
    made = profile.totals["autograd_nodes"] * seen.steps
    assert made > 60 * seen.steps, "gradients that have gradients have nodes, too"
    assert len(stored) == pytest.approx(made, abs=seen.steps)
    assert closed(profile) == pytest.approx(profile.steps.step_ms)
    at = {cost.line: cost for cost in profile.lines}
    for line in (5, 15):  # the layers, and the gradients that are differentiated again
        assert at[line].traceback_ms > 0.2 * at[line].step_ms
    assert at[5].check_ms > 0
    assert at[15].check_ms > 0
    assert all(cost.traceback_ms + cost.check_ms <= cost.cpu_ms * 1.001 for cost in profile.lines)
    assert at[19].traceback_ms == 0, "the optimizer makes no nodes"
