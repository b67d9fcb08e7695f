"""What each step changes is compiled again for each value: a whole number, and the length of a list."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rulekit.own_launches import changing_number, uncompilable

MODULE = """\
import torch

class Warmed:
    def advance(self):
        {change}  #> cost calls=1

class Model(Warmed, torch.nn.Module):
    def forward(self, x):
        return (x.exp() + x.tanh()) * {read}  #> cost calls=1 device_ms=5

model = Model()  #> site module type=__main__.Model
for {counted} in range(100):
    loss = model(x)  #> cost calls=1
    model.advance()  #> cost calls=1
"""


@pytest.mark.parametrize(
    ("change", "read", "counted", "found"),
    [
        ("self.seen += 1", "self.seen", "_", "seen"),
        ("self.seen = self.seen + 2", "(self.seen / 9)", "_", "seen"),
        ("self.rate *= 0.9", "self.rate", "_", None),  # not a whole number
        ("self.seen += 1", "self.rate", "_", None),  # not read there
        ("self.rate = 2", "now", "now", "now"),
    ],
)
def test_of_a_module(change: str, read: str, counted: str, found: str | None) -> None:
    example = read_example(MODULE.format(change=change, read=read, counted=counted))
    context = Context(example.profile, texts(example))
    assert changing_number(context, [one for one in context.profile.lines if one.device_ms]) == found


def test_of_an_object_that_is_no_module() -> None:
    code = MODULE.format(change="self.seen += 1", read="self.seen", counted="_")
    example = read_example(
        code.replace("Warmed, torch.nn.Module", "Warmed").replace("__main__.Model", "Linear")
    )
    context = Context(example.profile, texts(example))
    assert changing_number(context, [one for one in context.profile.lines if one.device_ms]) is None


HISTORY = """\
import torch

class Ledger:
    def __init__(self):
        self.seen = []

    def note(self, x):
        {noted}  #> cost calls=1 device_ms=1; op aten::detach count=1
        return (x.exp() + x.tanh()).mean()  #> cost calls=1 device_ms=5

ledger = Ledger()
for _ in range(100):
    loss = ledger.note(model(x))  #> cost calls=1
    {after}  #> cost calls=1
"""


@pytest.mark.parametrize(
    ("noted", "after", "found"),
    [
        ("self.seen.append(x.detach())", "optimizer.step()", True),
        ("self.seen.append(x.detach())", "ledger.seen.clear()", False),  # as long in each step
        ("kept = [x.detach()]", "optimizer.step()", False),
        ("self.last = x.detach()", "ledger.seen.append(loss.item())", False),  # outside of what is compiled
        ("past = torch.stack(self.seen)", "ledger.seen.append(loss.detach())", True),  # but read there
        ("self.last = x.detach()", "note(ledger.seen)", False),  # nothing adds to it
        ("self.last = x.detach()", "ledger.seen.append(note(ledger.seen))", True),  # given to what is
    ],
)
def test_a_list_that_gets_longer(noted: str, after: str, found: bool) -> None:
    example = read_example(HISTORY.format(noted=noted, after=after))
    context = Context(example.profile, texts(example))
    why = uncompilable(context, [one for one in context.profile.lines if one.device_ms])
    assert (why is not None and "`seen` gets longer" in why) is found
