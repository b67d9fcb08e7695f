"""A step with compiled code is surveyed around it, and nothing is compiled again for that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.capture.launching import Captured, request, write
from warpline.wire.sites import HostTensor, facts_of

pytestmark = pytest.mark.usefixtures("whole_torch")

SCRIPT = """\
import torch
import torch._dynamo.convert_frame as convert
from torch import nn

convert_frame_compile = convert._compile
def compile(code, *arguments, **named):
    print("compiled", code.co_name, flush=True)
    return convert_frame_compile(code, *arguments, **named)
convert._compile = compile

@torch.compile(backend="aot_eager")
def half(x):
    return torch.tanh(x) * 0.5

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)
    def forward(self, x):
        h = self.a(x)
        torch._dynamo.graph_break()
        return self.b(half(h))

net = Net()
net.compile(backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range({steps}):
    noise = torch.randn(4, 16)
    noise.to("meta")
    x = torch.ones(4, 16)
    loss = net(x + noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < 0:
        break
"""


@pytest.mark.parametrize("steps", [60, 8])
def test_what_runs_around_compiled_code_is_surveyed(tmp_path: Path, steps: int) -> None:
    text = SCRIPT.replace("{steps}", str(steps))
    captured = Captured(request(write(tmp_path, text)), tmp_path)
    lines = text.splitlines()
    made = [one for one in captured.facts.sites if one.kind == HostTensor.KIND]
    assert [(lines[one.line - 1].strip(), facts_of(HostTensor, one).op) for one in made] == [
        ("noise = torch.randn(4, 16)", "randn")
    ]
    assert captured.facts.flags.grad_enabled_in_step
    compiled = [line for line in captured.output.splitlines() if line.startswith("compiled ")]
    plain = _compiled_without_us(tmp_path, text)
    assert compiled in (plain, plain * 2)  # a script of few steps runs twice


def _compiled_without_us(folder: Path, text: str) -> list[str]:
    import subprocess
    import sys

    script = folder / "alone.py"
    script.write_text(text)
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    return [line for line in told.stdout.splitlines() if line.startswith("compiled ")]


def watched(act: Any) -> list[str]:
    """What ``Regions`` tells while ``act`` runs, between what ``act`` tells."""
    from warpline.capture.runner.compiled.regions import Regions, Watch

    told: list[str] = []
    regions = Regions()
    assert regions.start(Watch(lambda frame: told.append("in"), lambda frame: told.append("out")))
    try:
        act(told)
    finally:
        regions.stop()
    return told


def test_calls_within_a_compiled_call_are_part_of_it() -> None:
    torch = pytest.importorskip("torch")

    @torch.compile(backend="eager")
    def inner(x: Any) -> Any:
        return x + 1

    @torch.compile(backend="eager")
    def outer(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return inner(y)

    @torch._dynamo.disable
    def plain(x: Any) -> Any:
        return x - 1

    x = torch.ones(3)
    outer(x)

    def act(told: list[str]) -> None:
        for name, call in (("outer", outer), ("plain", plain), ("inner", inner)):
            told.append(name)
            call(x)

    assert watched(act) == ["outer", "in", "out", "plain", "inner", "in", "out"]


def test_a_compiled_call_that_raises_is_over() -> None:
    torch = pytest.importorskip("torch")

    @torch._dynamo.disable
    def fail(x: Any) -> Any:
        raise ValueError("no")

    @torch.compile(backend="eager")
    def call(x: Any) -> Any:
        return fail(x + 1)

    def act(told: list[str]) -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                call(torch.ones(2))

    assert watched(act) == ["in", "out"] * 2


def test_it_does_not_begin_within_a_compiled_call() -> None:
    torch = pytest.importorskip("torch")
    from warpline.capture.runner.compiled.regions import Regions, Watch

    begun: list[bool] = []

    @torch._dynamo.disable
    def begin() -> None:
        begun.append(Regions().start(Watch(begun.clear, begun.clear)))  # type: ignore[arg-type]

    @torch.compile(backend="eager")
    def call(x: Any) -> Any:
        y = x + 1
        begin()
        return y * 2

    call(torch.ones(2))
    assert begun == [False]
