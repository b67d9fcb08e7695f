"""Optimizers of one parameter each that hooks step, run before and after the edit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.profile import Facts
from warpline.rulekit import Context
from warpline.rulekit.optimizer_hooks import one_after_backward
from warpline.syntax.edits import Refused
from warpline.text.edits import apply
from warpline.wire.run import Site

FILE = "/example/train.py"
HEAD = """\
import torch
from torch import nn, optim

torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))
spare = nn.Linear(4, 4)  # not in every pass
net.append(spare)
rate = 0.01
"""
FUNCTIONS = """\
solvers = {w: optim.Adam([w], lr=rate, foreach=False) for w in net.parameters()}  # made

def update(weight):
    solvers[weight].step()
    solvers[weight].zero_grad()

for w in net.parameters():
    w.register_post_accumulate_grad_hook(update)

def epoch(net):
    for turn in range(4):
        loss = net[: 6 + turn % 2](torch.ones(2, 4)).square().sum()
        loss.backward()  # all of it

def train():
    epoch(net)
"""
LOOP = """\
solvers: dict = {}
for w in net.parameters():
    if w.requires_grad:
        solvers[w] = optim.Adam(params=[w], lr=rate, foreach=False)  # made
        w.register_post_accumulate_grad_hook(update)
"""
OBJECT = """\
class Trainer:
    def __init__(self, net, rate):
        self.net = net
        self.solvers = {}
        for w in self.net.parameters():
            self.solvers[w] = optim.AdamW([w], rate, weight_decay=0.1)  # made
        for w in self.net.parameters():
            w.register_post_accumulate_grad_hook(self.update)

    def update(self, weight):
        \"\"\"Step one.\"\"\"
        solver = self.solvers[weight]
        solver.step()
        weight.grad = None

    def epoch(self):
        for turn in range(4):
            with torch.autograd.set_detect_anomaly(False):
                self.net[: 6 + turn % 2](torch.ones(2, 4)).square().sum().backward()

def train():
    Trainer(net, rate).epoch()
"""
LOCAL = """\
def train():
    solvers = dict()
    for w in net.parameters():
        solvers[w] = optim.SGD([w], lr=rate, momentum=0.9)  # made
    def update(weight):
        solvers[weight].step()
        solvers[weight].zero_grad(set_to_none=True)
    for w in net.parameters():
        w.register_post_accumulate_grad_hook(update)
    for turn in range(4):
        net(torch.ones(2, 4)).square().sum().backward()
"""
SOLVERS, PLACE = FUNCTIONS.splitlines()[0] + "\n", "for w in net.parameters():\n    w.reg"
ONE_LOOP = (
    FUNCTIONS.replace(SOLVERS, "").partition("for w in")[0]
    + LOOP
    + "\ndef epoch"
    + FUNCTIONS.partition("def epoch")[2]
)


def edited(code: str, parallel: bool = False) -> tuple[str, str]:
    text = HEAD + code
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "# made" in one)
    site = Site("optimizer", FILE, line, "train")
    facts = Facts(sites=(site, *([Site("parallel", FILE, line, "train")] if parallel else [])))
    context = Context(samples.profile({FILE: text}, facts=facts), lambda file: text if file == FILE else None)
    kind = code.partition("optim.")[2].partition("(")[0]
    return text, apply(text, one_after_backward(context, site, kind).edits)


@pytest.mark.parametrize("code", [FUNCTIONS, ONE_LOOP, OBJECT, LOCAL])
def test_one_optimizer_gives_the_same_weights(code: str) -> None:
    results = []
    for text in edited(code):
        names: dict[str, Any] = {}
        exec(text, names)
        names["train"]()
        assert all(p.grad is None for p in names["net"].parameters())
        results.append([p.detach() for p in names["net"].parameters()])
    assert "register" not in text
    assert "fused=True" in text
    assert "foreach" not in text
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    solvers[weight].zero_grad()\n", ""),  # gradients would add up
        ("weight].zero_grad()", "weight].zero_grad(set_to_none=False)"),  # momentum would move unused weights
        ("    solvers[weight].step()", "    weight.grad.clamp_(-1, 1)\n    solvers[weight].step()"),
        ("    solvers[weight].step()", "    if ready:\n        solvers[weight].step()"),
        ("lr=rate", "lr=rate / w.numel()"),
        ("lr=rate", "lr=next(rates)"),
        ("lr=rate", "**settings"),
        ("foreach=False", "foreach=quick"),
        ("[w]", "[{'params': w}]"),
        ("for w in net.parameters()}", "for w in net.parameters() if w.ndim > 1}"),
        (PLACE, PLACE.replace("net", "spare")),
        (PLACE, PLACE.replace("w.reg", "handle = w.reg")),
        ("hook(update)", "hook(lambda w: update(w))"),
        ("def update", "@torch.no_grad()\ndef update"),
        ("    epoch(net)", "    epoch(net)\n    update(net[0].weight)"),
        ("    epoch(net)", "    epoch(net)\n    for one in solvers.values():\n        one.param_groups"),
        ("    epoch(net)", "    epoch(net)\n    net(torch.ones(2, 4)).sum().backward()"),
        ("loss.backward()", "grads = loss.backward()"),
        ("def train", "spare.weight.register_post_accumulate_grad_hook(print)\n\ndef train"),
        ("solvers = {w", "optimizer = opt = solver = None\nsolvers = {w"),
    ],
)
def test_what_one_optimizer_might_change_stays(old: str, new: str) -> None:
    assert old in FUNCTIONS
    with pytest.raises(Refused):
        edited(FUNCTIONS.replace(old, new, 1))


@pytest.mark.parametrize(
    "code",
    [
        ONE_LOOP.replace("solvers: dict = {}\n", ""),
        ONE_LOOP.replace("        w.reg", "        seen += 1\n        w.reg"),
        OBJECT.replace("    def epoch", "class Other:\n    def epoch"),
        OBJECT.replace("self.solvers", "self.net.solvers"),
        LOCAL.replace("    for turn", "    return solvers\n\ndef other():\n    for turn"),
    ],
)
def test_what_the_backward_pass_does_not_see_stays(code: str) -> None:
    with pytest.raises(Refused):
        edited(code)


def test_gradients_of_several_processes_stay() -> None:
    with pytest.raises(Refused):
        edited(FUNCTIONS, parallel=True)
