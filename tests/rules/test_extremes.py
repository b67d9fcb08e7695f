"""The smaller or larger of two values by Python's own functions, where one or both are tensors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.sync_in_step import SyncInStep
from warpline.text.edits import apply

SCRIPT = """\
#> totals idle_ms=8
import math
import torch

def least(*values):
    return values[0]

class Told:
    def __init__(self):
        self.low = {begin}

    def take(self, loss, other):
        {line}  #> cost calls=1 cpu_ms=9 sync_ms=9 step_ms=0.5
        #^ {op}; site sync what={what} calls=1 wait_ms=9 direct=true

told = Told()
for loss, other in [(torch.tensor(a), torch.tensor(b)) for a, b in [(3.0, 4.0), (1.0, -2.0), (2.0, 5.0)]]:
    told.take(loss * 1, other)  #> cost device_ms=12 idle_ms=8 step_ms=20
"""
TENSORS = "op aten::{} dtypes=float,float shapes=[[],[]]"
NUMBER = "op aten::{} dtypes=float,Scalar shapes=[[],[]]"


def edited(line: str, op: str, begin: str = "torch.zeros(())", what: str = "bool") -> tuple[str, str | None]:
    """The script, and with the edit; None where none is offered."""
    example = read_example(SCRIPT.format(line=line, op=op, begin=begin, what=what))
    (draft,) = SyncInStep().find(Context(example.profile, texts(example)))
    assert all(fix.applicability == "unsafe" for fix in draft.fixes)
    return example.text, apply(example.text, draft.fixes[0].edits) if draft.fixes else None


def low(text: str) -> float:
    names: dict[str, Any] = {}
    exec(compile(text, "/example/train.py", "exec"), names)
    return float(names["told"].low)


@pytest.mark.parametrize(
    ("line", "op", "begin", "after"),
    [
        ("self.low = min(self.low, loss.clone())", TENSORS.format("lt"), "torch.ones(())",
         "torch.minimum(self.low, loss.clone())"),
        ("self.low = max(loss + 0, other + 0) + self.low", TENSORS.format("gt"), "torch.ones(())",
         "torch.maximum(loss + 0, other + 0) + self.low"),
        ("self.low = min(self.low, loss + other)", TENSORS.format("lt"), 'float("inf")',
         "(loss + other).clamp(max=self.low)"),
        ("self.low = max(loss.clone(), self.low)", TENSORS.format("gt"), "-math.inf",
         "loss.clone().clamp(min=self.low)"),
        ("self.low = max(loss - 2, 0.5) + self.low", NUMBER.format("lt"), "0.0",
         "(loss - 2).clamp(min=0.5) + self.low"),
        ("self.low = min(2.0, loss.clone()) - self.low", NUMBER.format("lt"), "0.0",
         "loss.clone().clamp(max=2.0) - self.low"),
        ("self.low += min(loss * 1, -1.5 + 3)", NUMBER.format("gt"), "0.0",
         "self.low += (loss * 1).clamp(max=-1.5 + 3)"),
    ],
)  # fmt: skip
def test_the_device_chooses(line: str, op: str, begin: str, after: str) -> None:
    text, changed = edited(line, op, begin)
    assert changed is not None and after in changed
    assert low(text) == low(changed)


@pytest.mark.parametrize(
    ("line", "op"),
    [
        ("self.low = min(loss, other)", TENSORS.format("lt")),  # any of them may be a number before
        ("self.low = min(loss.clone(), other.clone())", "cost calls=1"),  # nothing tells what it compared
        ("self.low = min(loss.clone(), other.clone(), self.low)", TENSORS.format("lt")),
        ("self.low = min((loss.clone(), other.clone()))", TENSORS.format("lt")),
        ("self.low = min(*[loss.clone(), other.clone()])", TENSORS.format("lt")),
        ("self.low = min(loss.clone(), other.clone(), key=float)", TENSORS.format("lt")),
        ("self.low = min(2, 3) if loss < 2 else 4", TENSORS.format("lt")),
        ("self.low = min(2, 3) + (loss < other)", TENSORS.format("lt")),
        ("self.low = least(loss.clone(), other.clone())", TENSORS.format("lt")),
        ("min = least; self.low = min(loss.clone(), other.clone())", TENSORS.format("lt")),
        ("if min(loss.clone(), other.clone()): self.low = 3", TENSORS.format("lt")),
    ],
)
def test_others_choose_as_before(line: str, op: str) -> None:
    assert edited(line, op)[1] is None


def test_a_line_that_waits_for_something_else_stays() -> None:
    assert edited("self.low = min(loss.item(), 3.0)", NUMBER.format("gt"), what="item")[1] is None
