"""Parameters that no optimizer has, in steps with compiled modules: gradients are not watched there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.launching import Captured, request, write
from warpline.rulekit.graph import graph_of
from warpline.rulekit.graph.unheld import calls_of_unheld

pytestmark = pytest.mark.usefixtures("whole_torch")

SCRIPT = """\
import copy
import torch
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, 16)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.block.compile(backend="aot_eager")

    def forward(self, x):
        return self.block(self.stem(x))

query = Net()
key = copy.deepcopy(query)
{held}
optimizer = torch.optim.SGD(held, lr=0.1)

@torch.compile(backend="aot_eager")
def unseen():
    with torch.no_grad():
        for one in key.parameters():
            one.sub_(0.001 * one.grad)

def step():
    with torch.no_grad():
        {follow}
    x = torch.randn(8, 16)
    q = query(x)
    k = key(x)
    loss = (q * k).sum()
    optimizer.zero_grad()
    loss.backward()
    {after}
    optimizer.step()

for _ in range(200):
    step()
"""
AVERAGED = "for one, other in zip(key.parameters(), query.parameters()): one.lerp_(other, 0.01)"
LISTED = "torch._foreach_lerp_(list(key.parameters()), list(query.parameters()), 0.01)"


def found(
    folder: Path, held: str = "query.parameters()", follow: str = AVERAGED, after: str = "pass"
) -> set[str]:
    """The text of the lines that call what has such parameters alone."""
    script = SCRIPT.format(held=f"held = list({held})", follow=follow, after=after)
    captured = Captured(request(write(folder, script)), folder)
    flow = captured.facts.dataflow
    assert flow.around, flow.missing
    return {script.splitlines()[line - 1].strip() for _, line in calls_of_unheld(graph_of(flow))}


@pytest.mark.parametrize("follow", [AVERAGED, LISTED, "pass"])
def test_a_momentum_encoder(tmp_path: Path, follow: str) -> None:
    assert found(tmp_path, follow=follow) == {"k = key(x)"}


@pytest.mark.parametrize(
    "facts",
    [
        {"held": "[*query.parameters(), *key.parameters()]"},
        {"held": "[*query.parameters(), *key.block.parameters()]"},  # its first layer is frozen
        {"after": "torch.nn.utils.clip_grad_norm_([*query.parameters(), *key.parameters()], 1.0)"},
        {"after": "torch._foreach_norm([one.grad for one in key.parameters()] * 40)"},  # not recorded so long
        {"after": "[one.data.sub_(0.01 * one.grad) for one in key.parameters()]"},
        {"after": "unseen()"},
        {"after": "key.zero_grad()"},  # then nobody can tell
    ],
)
def test_what_something_else_may_train_or_read(tmp_path: Path, facts: dict[str, str]) -> None:
    assert "k = key(x)" not in found(tmp_path, **facts)
