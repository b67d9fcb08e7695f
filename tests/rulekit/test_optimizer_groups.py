"""Groups of an optimizer that are made one for each parameter, run before and after the edit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests import samples
from warpline.model.profile import Facts
from warpline.rulekit import Context
from warpline.rulekit.optimizer_groups import same_settings_together
from warpline.syntax.edits import Refused
from warpline.text.edits import apply
from warpline.wire.run import Site

FILE = "/example/train.py"
SCRIPT = """\
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))

def rate(name, lr):
    return lr * 0.5 ** (int(name[0]) // 2)

{grouped}

def train():
    {made}
    {schedule}
    for turn in range(3):
        net(torch.ones(2, 4)).square().sum().backward()
        opt.step()
        {after}
        opt.zero_grad()
    return opt, [p.detach() for p in net.parameters()]
"""
GROUP = '{"params": p, "lr": rate(n, lr), "weight_decay": 0.0 if p.ndim < 2 else 0.1}'
APPENDED = f"""\
def grouped(net, lr):
    groups = []
    for n, p in net.named_parameters():
        groups.append({GROUP})  # one by one
    return groups
"""
YIELDED = f"""\
def grouped(net, lr):
    for n, p in net.named_parameters():
        yield {GROUP}  # one by one
"""
LISTED = f"""\
def grouped(net, lr):
    return [{GROUP} for n, p in net.named_parameters()]  # one by one
"""
NAMED = f"""\
def grouped(net, lr):
    groups = [  # one by one
        {GROUP}
        for n, p in net.named_parameters()
        if p.requires_grad
    ]
    return groups
"""
BUILT = GROUP.replace('{"params": p, "lr": ', "dict(params=[p], lr=").replace(
    ', "weight_decay": 0.0 if p.ndim < 2 else 0.1}', ", **({'weight_decay': 0.0} if p.ndim < 2 else {}))"
)
GROWN = APPENDED.replace("groups.append(", "groups += [").replace("0.1})", "0.1}]")
CHOSEN = f"""\
def chosen(net, lr, name):
    groups = []
    for n, p in net.named_parameters():
        groups += [{GROUP}]  # one by one
    if name == "RMSprop":
        return getattr(torch.optim, name)(groups, momentum=0.9)
    return getattr(torch.optim, name)(groups, weight_decay=0.1)  # made
"""
MADE = "opt = torch.optim.AdamW(grouped(net, 0.1), weight_decay=0.1)  # made"
AT_CALL = (
    f"opt = torch.optim.AdamW([{GROUP} for n, p in net.named_parameters()], foreach=True)  # made, one by one"
)
GENERATOR = (
    f"opt = torch.optim.AdamW(({GROUP} for n, p in net.named_parameters()), foreach=True)  # made, one by one"
)


def edited(
    grouped: str = APPENDED,
    made: str = MADE,
    schedule: str = "lr = 0.1",
    after: str = "pass",
    more: str = "",
) -> tuple[str, str]:
    text = SCRIPT.format(grouped=grouped, made=made, schedule=schedule, after=after) + more
    lines = list(enumerate(text.splitlines(), 1))
    places = [number for number, line in lines if "# made" in line]
    facts = Facts(sites=tuple(Site("optimizer", FILE, place, "train") for place in places))
    context = Context(samples.profile({FILE: text}, facts=facts), lambda file: text if file == FILE else None)
    line = next(number for number, line in lines if "one by one" in line)
    return text, apply(text, same_settings_together(context, (FILE, line)).edits)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"grouped": YIELDED},
        {"grouped": LISTED},
        {"grouped": NAMED},
        {"grouped": NAMED.replace("groups", "param_groups")},
        {"grouped": APPENDED.replace("groups", "param_groups")},
        {"grouped": LISTED.replace(GROUP, BUILT)},
        {"grouped": APPENDED.replace(GROUP, BUILT)},
        {"grouped": APPENDED.replace('"params": p', '"params": [p]')},
        {"grouped": GROWN},
        {"grouped": CHOSEN, "made": "opt = chosen(net, 0.1, 'AdamW')"},
        {"grouped": LISTED, "made": "made = grouped(net, 0.1)\n    opt = torch.optim.AdamW(made)  # made"},
        {"grouped": "", "made": f"lr = 0.1\n    {AT_CALL}"},
        {"grouped": "", "made": f"lr = 0.1\n    {GENERATOR}"},
        {"schedule": "sched = LambdaLR(opt, lambda n: 0.9**n)", "after": "sched.step()"},
        {"after": "for g in opt.param_groups: g['lr'] *= 0.9"},
        {"after": "for g in opt.param_groups: g['lr'] = max(g['lr'] - 0.01 * turn, g['weight_decay'] / 10)"},
        {"after": "print(opt.param_groups[0]['lr'])"},
    ],
)  # fmt: skip
def test_parameters_with_the_same_settings_share_a_group(given: dict[str, str]) -> None:
    if "after" in given:
        given["after"] = given["after"].replace(": g[", ":\n            g[")
    results, numbers = [], []
    for text in edited(**given):
        names: dict[str, Any] = {"lr": 0.1}
        exec(text, names)
        opt, weights = names["train"]()
        results.append(weights)
        numbers.append(len(opt.param_groups))
    assert numbers == [12, 6]
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize(
    "given",
    [
        {"after": "for g in opt.param_groups: pass"},
        {"after": "for g, lr in zip(opt.param_groups, rates): g['lr'] = lr"},
        {"after": "for g in opt.param_groups:\n            g['lr'] = next(rates)"},
        {"after": "for g in opt.param_groups:\n            g['lr'] = 0.1; lr = lr * 2"},
        {"after": "for g in opt.param_groups:\n            g['lr'] = len(g['params'])"},
        {"after": "opt.param_groups[0]['lr'] = 0.1"},
        {"after": "opt.param_groups[0]['lr'] *= 0.1"},
        {"after": "print(opt.param_groups[1]['lr'])"},
        {"after": "param_groups = opt.param_groups"},
        {"after": "print(opt.param_groups[0]['params'])"},
        {"after": "print(sched.get_last_lr())"},
        {"schedule": "sched = LambdaLR(opt, [f, g])"},
        {"schedule": "opt.load_state_dict(torch.load('state.pt'))"},
        {"grouped": APPENDED.replace("return groups", "print(len(groups))\n    return groups")},
        {"grouped": APPENDED.replace("return groups", "return groups[:3]")},
        {"grouped": APPENDED.replace('"params": p', '"params": list(p)')},
        {"grouped": APPENDED.replace('"params": p', '"params": p.mates')},
        {"grouped": APPENDED.replace(GROUP, '{"params": [p]}')},
        {"grouped": APPENDED.replace("groups.append", "groups = []; groups.append")},
        {"grouped": APPENDED.replace("named_parameters", "named_children")},
        {"grouped": GROWN.replace("}]", "}, {}]")},
        {"grouped": GROWN.replace("+=", "-=")},
        {"grouped": GROWN.replace("return groups", "print(len(groups))\n    return groups")},
        {
            "grouped": CHOSEN.replace("getattr(torch.optim, name)(groups, momentum", "show(groups, momentum"),
            "made": "opt = chosen(net, 0.1, 'AdamW')",
        },
        {"grouped": YIELDED + "        yield {}\n"},
        {"grouped": YIELDED.replace("named_parameters", "named_children")},
        {"grouped": LISTED.replace("named_parameters", "named_children")},
        {"grouped": LISTED.replace("return [", "return (net.fast and [").replace("()]", "()])")},
        {"grouped": LISTED, "more": "again = grouped(net, 0.2)\n"},
        {"grouped": YIELDED, "more": "again = grouped(net, 0.2)\n"},
        {"grouped": LISTED, "more": "for name, group in zip(names, grouped(net, 0.2)): show(name, group)\n"},
        {"grouped": LISTED, "more": "make = grouped\n"},
        {"made": MADE.replace("grouped(net, 0.1)", "sorted(grouped(net, 0.1), key=len)")},
        {"grouped": NAMED.replace("return groups", "return [*groups, *groups]")},
        {"grouped": NAMED.replace("return groups", "show(groups)\n    return groups")},
    ],
)
def test_groups_that_something_else_counts_or_reads_stay(given: dict[str, str]) -> None:
    with pytest.raises(Refused):
        edited(**given)


MADE_ELSEWHERE = """\
{imported}
import torch

class Learning:
    def __init__(self, net):
        self.opt = torch.optim.AdamW({call}(net, 0.1), fused=True)  # made

    def decay(self, lr):
        for group in self.opt.param_groups:
            group["lr"] = lr
"""


def edited_in(path: str, imported: str, call: str, more: str = "") -> str:
    """What the edit makes of a file with a function that another one imports."""
    helper = APPENDED.replace("grouped", call.rpartition(".")[2])
    files = {path: helper, FILE: MADE_ELSEWHERE.format(imported=imported, call=call) + more}
    line = files[FILE][: files[FILE].index("# made")].count("\n") + 1
    facts = Facts(sites=(Site("optimizer", FILE, line, "train"),))
    context = Context(samples.profile(files, facts=facts), files.get)
    return apply(helper, same_settings_together(context, (path, 4)).edits)


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from helpers import param_groups", "param_groups"),
        ("import helpers", "helpers.grouped"),
        ("import helpers as made", "made.grouped"),
    ],
)
def test_groups_may_be_made_in_another_file(imported: str, call: str) -> None:
    """Also by a function that has the name of what an optimizer has."""
    assert "for other in groups:" in edited_in("/example/helpers.py", imported, call)


@pytest.mark.parametrize(
    ("imported", "more"),
    [
        ("from helpers import param_groups", "print(len(param_groups(net, 0.1)))\n"),
        ("from helpers import param_groups", "make = param_groups\n"),
        ("from helpers import param_groups, param_groups as made", ""),
    ],
)
def test_groups_of_another_file_that_something_else_reads_stay(imported: str, more: str) -> None:
    with pytest.raises(Refused):
        edited_in("/example/helpers.py", imported, "param_groups", more)
