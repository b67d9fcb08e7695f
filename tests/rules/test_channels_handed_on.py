"""A model that the training function is given is converted where its callers move it or make it."""

from __future__ import annotations

import pytest

from tests.rules.test_channels_on_cpu import FIRST, told
from warpline.model.report import Finding

FITTED = """\
#> device kind=cpu; steps step_ms=20
import torch
class Spots(torch.nn.Module):
    def forward(self, slides):
        return self.spread(slides).relu()
        #^ cost step_ms=15 device_ms=15 backward_ms=2
        #^ op aten::mkldnn_convolution shapes=[[4,24,32,32]] strides={strides} dtypes=float device_ms=15
        #^ node aten.convolution.default args=[%20,%21] shape=[4,24,32,32] function=Spots.forward
        #^ node aten.relu.default args=[%0] shape=[4,24,32,32] function=Spots.forward
def fit(reader, batches):
    reader.train()
    for slides, wanted in batches:
        loss = (reader(slides) - wanted).square().mean()
        loss.backward()
        optimizer.step()
"""
FORWARD = 8  # the line of the loss
CALLED = 11  # the first line below


def found(callers: str) -> Finding:
    (one,) = told(FITTED.format(strides=FIRST) + callers).findings
    assert one.rule == "channels-first-conv"
    return one


@pytest.mark.parametrize(
    ("callers", "at", "name"),
    [
        ("spots = Spots()\nspots.to(place)\nfit(spots, batches)", 1, "spots"),
        ("spots = Spots()\nfit(batches=batches, reader=spots)\nspots.to(place)", 0, "spots"),
        ("spots = Spots().to(place)\nspots = wrap(spots)\nwhile True:\n    fit(spots, batches)", 1, "spots"),
        ("for _ in folds:\n    spots = Spots()\n    fit(spots, batches)", 1, "spots"),
        ("if big:\n    it = Spots(2)\nelse:\n    it = Spots(1)\nit.cuda()\nfit(it, batches)", 4, "it"),
        ("def run(net):\n    fit(net, batches)\nmine = Spots()\nrun(mine)", 2, "mine"),
        ("def run(net):\n    net.to(place)\n    fit(net, batches)\nrun(Spots())", 1, "net"),
    ],
)
def test_it_is_converted_where_a_caller_moves_or_makes_it(callers: str, at: int, name: str) -> None:
    one = found(callers)
    assert one.line == CALLED + at
    (edit,) = one.fixes[0].edits
    assert edit.text.strip() == f"{name}.to(memory_format=torch.channels_last)"
    assert edit.start[0] == one.line + 1


@pytest.mark.parametrize(
    "callers",
    [
        "first = Spots()\nfit(first, batches)\nsecond = Spots()\nfit(second, batches)",
        "if big:\n    it = Spots(2)\nelse:\n    it = Spots(1)\nfit(it, batches)",  # in one branch alone
        "fit(Spots(), batches)",
        "def run(spots):\n    spots = spots\n    fit(spots, batches)\nrun(Spots())",
    ],
)
def test_else_above_the_loop_of_the_step(callers: str) -> None:
    one = found(callers)
    assert one.line == FORWARD
    (edit,) = one.fixes[0].edits
    assert edit.text.strip() == "reader.to(memory_format=torch.channels_last)"
    assert edit.start[0] == FORWARD - 1


def test_once_is_enough() -> None:
    done = "spots.to(memory_format=torch.channels_last)"
    one = found(f"spots = Spots()\n{done}\nfit(spots, batches)")
    assert one.fixes == ()
    assert "already" in one.message


def test_it_is_not_converted_below_the_call_that_trains_it() -> None:
    one = found("reader = Spots().to(place)\nreader = fit(reader, batches)\n#^ around\n")
    assert one.line == CALLED
    (edit,) = one.fixes[0].edits
    assert edit.text.strip() == "reader.to(memory_format=torch.channels_last)"
    assert edit.start[0] == CALLED + 1
