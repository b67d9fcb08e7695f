"""Groups of an optimizer that are made one for each parameter, run before and after the edit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests import samples
from warpline.rulekit import Context
from warpline.rulekit.optimizer_groups import same_settings_together
from warpline.syntax.edits import Refused
from warpline.text.edits import apply

FILE = "/example/train.py"
SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))

def grouped(net, lr):
    groups = []
    for number, (name, p) in enumerate(net.named_parameters()):
        scale = 0.5 ** (number // 4)
        {append}  # one by one
    {after}

def train():
    opt = torch.optim.AdamW(grouped(net, 0.1))
    for _ in range(3):
        net(torch.ones(2, 4)).square().sum().backward()
        opt.step()
        opt.zero_grad()
    return opt, [p.detach() for p in net.parameters()]
"""
APPEND = 'groups.append({"params": [p], "lr": lr * scale, "weight_decay": 0.0 if p.ndim < 2 else 0.1})'


def edited(append: str = APPEND, after: str = "return groups", more: str = "") -> tuple[str, str]:
    text = SCRIPT.format(append=append, after=after) + more
    context = Context(samples.profile({FILE: text}), lambda file: text if file == FILE else None)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "# one by one" in line)
    return text, apply(text, same_settings_together(context, (FILE, line)).edits)


def test_parameters_with_the_same_settings_share_a_group() -> None:
    results, numbers = [], []
    for text in edited():
        names: dict[str, Any] = {}
        exec(text, names)
        opt, weights = names["train"]()
        results.append(weights)
        numbers.append(len(opt.param_groups))
    assert numbers == [12, 6]
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize(
    "given",
    [
        {"more": "for group in train()[0].param_groups: pass\n"},
        {"more": "sched = torch.optim.lr_scheduler.LambdaLR(opt, [f, g])\n"},
        {"after": "print(len(groups))\n    return groups"},
        {"after": "return groups[:3]"},
        {"append": APPEND.replace("[p]", "[p, p.mate]")},
        {"append": APPEND.replace("[p]", "list(p)")},
        {"append": 'groups.append({"params": [p]})'},
        {"append": 'groups.append({"params": [p], **more})'},
        {"append": "groups.append(dict(params=[p], lr=lr))"},
        {"append": f"groups = []; {APPEND}"},
    ],
)
def test_other_groups_stay(given: dict[str, str]) -> None:
    with pytest.raises(Refused):
        edited(**given)


YIELDED = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))

def grouped(net, lr):
    for name, p in {looped}:
        {made}  # one by one

def train():
    opt = torch.optim.AdamW(grouped(net, 0.1))
    for _ in range(3):
        net(torch.ones(2, 4)).square().sum().backward()
        opt.step()
        opt.zero_grad()
    return opt, [p.detach() for p in net.parameters()]
"""
MADE = 'yield {"params": p, "lr": lr / (1 + int(name[0]) // 2), "weight_decay": 0.0 if p.ndim < 2 else 0.1}'


def yielded(made: str = MADE, looped: str = "net.named_parameters()", more: str = "") -> tuple[str, str]:
    text = YIELDED.format(made=made, looped=looped) + more
    context = Context(samples.profile({FILE: text}), lambda file: text if file == FILE else None)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "# one by one" in line)
    return text, apply(text, same_settings_together(context, (FILE, line)).edits)


def test_groups_of_a_generator_are_yielded_when_all_are_known() -> None:
    results, numbers = [], []
    for text in yielded():
        names: dict[str, Any] = {}
        exec(text, names)
        opt, weights = names["train"]()
        results.append(weights)
        numbers.append(len(opt.param_groups))
    assert numbers == [12, 6]
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize(
    "given",
    [
        {"more": "again = grouped(net, 0.2)\n"},
        {"made": f"{MADE}\n        yield {{}}"},
        {"looped": "net.named_children()"},
        {"made": MADE.replace('"params": p', '"params": list(p)')},
    ],
)
def test_another_generator_stays(given: dict[str, str]) -> None:
    with pytest.raises(Refused):
        yielded(**given)
