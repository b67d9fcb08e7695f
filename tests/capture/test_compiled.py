"""What Dynamo does is noted with the user's line; a compiled module makes a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write

pytestmark = pytest.mark.usefixtures("whole_torch")

WATCHED = """\
import torch
import torch._dynamo.convert_frame as convert
from torch import nn
convert_frame_compile = convert._compile
def compile(code, *arguments, **named):
    print("compiled", code.co_name, flush=True)
    return convert_frame_compile(code, *arguments, **named)
convert._compile = compile
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 16)
    def forward(self, x):
        return torch.tanh(self.a(x))
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    while True:
        net(torch.randn(4, 16))
"""


def test_what_watches_compiled_code_is_not_compiled(tmp_path: Path) -> None:
    """Before Python 3.12 a trace function runs amid compiled code, and Dynamo takes it for the script's."""
    captured = Captured(request(write(tmp_path, WATCHED)), tmp_path)
    compiled = [line for line in captured.output.splitlines() if line.startswith("compiled ")]
    assert compiled == ["compiled forward"]


COMPILED_PASS = """\
import torch, torch._dynamo
torch._dynamo.config.compiled_autograd = True
net = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
@torch.compile(backend="eager")
def derive(x):
    net(x).square().mean().backward()
while True:
    derive(torch.randn(8, 16))
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_compiled_backward_pass(tmp_path: Path) -> None:
    """It calls a compiled module of its own, and ours around that, while Dynamo compiles what it sees."""
    captured = Captured(request(write(tmp_path, COMPILED_PASS)), tmp_path)
    assert captured.manifest.step_source == "optimizer"
    assert "losses.py" not in captured.output, "Dynamo would compile it again and again"


TEXT = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 16)
    def forward(self, x):
        h = torch.tanh(self.a(x))
        print("", end="")
        return h.relu()
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    at = 0
    while True:
        at += 1
        net(torch.randn(4 if at % 2 else 8, 16))
"""


def test_breaks_and_recompilations(tmp_path: Path) -> None:
    captured = Captured(request(write(tmp_path, TEXT)), tmp_path)
    assert captured.manifest.step_source == "forward"
    events = {(event.kind, event.line): event for event in captured.facts.compile_events}
    assert "print" in events["graph_break", 9].reason
    assert any(kind == "recompile" and "size" in event.reason for (kind, _), event in events.items())
    site = next(site for site in captured.facts.sites if site.kind == "compile")
    assert (site.line, site.facts["backend"]) == (11, "eager")
    assert captured.lines()["train.py", 16] >= 3
