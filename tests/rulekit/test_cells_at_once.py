"""Loops over recurrent cells that become a call of the layer, run before and after the edit."""

from __future__ import annotations

from typing import Any

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.cells_at_once import cells, layer_at_once
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

CODE = """\
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.{cell}(5, 7)

    def forward(self, x):
        h = c = x.new_ones(x.shape[{batch}], 7)
        seen = []
{loop}

def work():
    torch.manual_seed(0)
    return Reader()(torch.randn(4, 9, 5))
"""
STEP = "  #> cost step_ms=9 calls=9; op aten::{} count=9 cpu_ms=8"
LSTM, GRU = STEP.format("lstm_cell"), STEP.format("gru_cell")
UNBOUND = f"""\
        for now in x.unbind(1):
            h, c = self.memory(now, (h, c)){LSTM}
            seen.append(h)
        return torch.stack(seen, dim=1)"""
NUMBERED = f"""\
        for t in range(x.size(0)):
            row = x[t]
            h = self.memory(row, h){GRU}
            seen.append(h)
        return torch.stack(seen, dim=1), h"""
LAST = f"""\
        for t in range(x.shape[1]):
            h, c = self.memory(x[:, t], (h, c)){LSTM}
        return h - c"""


def edited(loop: str, cell: str = "LSTMCell", batch: int = 0, more: str = "") -> str:
    example = read_example(CODE.format(cell=cell, batch=batch, loop=loop) + more)
    context = Context(example.profile, texts(example))
    (found,) = cells(context)
    after = apply(example.text, layer_at_once(context, found).edits)
    results = []
    for text in (example.text, after):
        scope: dict[str, Any] = {}
        exec(text, scope)
        results.append(scope["work"]())
    torch.testing.assert_close(*results)
    return after


def test_states_that_are_stacked() -> None:
    after = edited(UNBOUND)
    assert "nn.LSTM(5, 7, batch_first=True)" in after
    assert "        seen, (h, c) = self.memory(x, (h[None], c[None]))\n        return seen\n" in after


def test_rounds_with_numbers() -> None:
    after = edited(NUMBERED, "GRUCell", 1)
    assert "nn.GRU(5, 7)" in after
    assert "        return seen.transpose(0, 1), h\n" in after


def test_the_last_state_alone() -> None:
    assert "        _, (h, c) = self.memory(x, (h[None], c[None]))\n        h = h[0]\n" in edited(LAST)


@pytest.mark.parametrize(
    ("loop", "more"),
    [
        (UNBOUND.replace("append(h)", "append(h.relu())"), ""),
        (UNBOUND.replace("unbind(1)", "unbind(1)[::2]"), ""),
        (LAST.replace("range(x.shape[1])", "range(8)"), ""),
        (LAST.replace("(h, c))", "(h, c * 0.9))"), ""),
        (
            LAST.replace("h, c = ", "h = ").replace("(h, c))", "h)").replace("h - c", "h[0]"),
            "",
        ),  # both in one
        (UNBOUND, "\nnn.init.orthogonal_(Reader().memory.weight_hh)\n"),
        (UNBOUND, "\ndef resume(net):\n    net.load_state_dict(torch.load('best.pt'))\n"),
        (UNBOUND, "\ndef decays(name):\n    return not name.endswith('bias_hh')\n"),
        (UNBOUND, "\ndef each(nets, x):\n    return torch.vmap(nets)(x)\n"),
        (UNBOUND, "\ndef is_cell(layer):\n    return isinstance(layer, nn.LSTMCell)\n"),
    ],
)
def test_other_loops_are_left_alone(loop: str, more: str) -> None:
    with pytest.raises(Refused):
        edited(loop, more=more)
