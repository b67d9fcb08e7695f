"""Where the groups of an optimizer are made, in several spellings."""

from __future__ import annotations

import libcst as cst
import pytest

from warpline.rulekit.optimizer_step import is_by_name, maker_of
from warpline.syntax.source import Source

SPELLINGS = {
    "added in a loop": """\
groups = []
for p in net.parameters():
    groups.append({"params": [p]})  # here
AdamW(groups, fused=True)
""",
    "concatenated in a loop, of a class that is looked up": """\
def build(net, name):
    groups = []
    for p in net.parameters():
        groups += [{"params": [p]}]  # here
    return getattr(torch.optim, name)(groups, fused=True)
import torch
""",
    "a comprehension": """\
groups = [{"params": [p]} for p in net.parameters()]  # here
AdamW(params=groups)
""",
    "at the call": """\
AdamW(
    [{"params": [p]} for p in net.parameters()],  # here
    lr=0.1,
)
""",
    "by a function": """\
def split(net):
    found = []
    for name, p in net.named_parameters():
        found.append({"params": [p], "lr": rate(name)})  # here
    return found

AdamW(split(net))
""",
    "by a function, and given a name": """\
class Trainer:
    def split(self):
        return [dict(params=p, lr=rate(name)) for name, p in self.net.named_parameters()]  # here

    def run(self):
        groups = self.split()
        AdamW(groups)
""",
    "by a generator": """\
def split(net):
    for layer in net.layers:
        for p in layer.parameters():
            yield {"params": [p], "lr": rate(layer)}  # here

AdamW(split(net))
""",
    "by a function of another file": """\
AdamW(split(net), fused=True)  # here
""",
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_line_that_makes_a_group(name: str) -> None:
    text = SPELLINGS[name]
    source = Source("train.py", text)
    made = (
        one for one in source.nodes(cst.Call) if source.is_named(one.func, "AdamW") or is_by_name(source, one)
    )
    (call,) = made
    wanted = next(at for at, line in enumerate(text.splitlines(), 1) if "# here" in line)
    assert source.line(maker_of(source, call, "params")[1]) == wanted


def test_the_line_of_another_file() -> None:
    main = Source("train.py", "from helpers import split\nAdamW(split(net))\n")
    helpers = Source("helpers.py", SPELLINGS["by a generator"])
    call = next(one for one in main.nodes(cst.Call) if main.is_named(one.func, "AdamW"))
    found, maker = maker_of(main, call, "params", [main, helpers])
    assert found.place(maker) == ("helpers.py", 4)
