"""Losses with a small number that has a name: the recorded step tells how small it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.annotated import read_example
from tests.rules.test_own_gradients import drafts
from warpline.rules.hand_written_loss import HandWrittenLoss
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

CLASSES = """\
import torch
import torch.nn.functional as F

class Surprise(torch.nn.Module):
    def __init__(self, floor={small}):
        super().__init__()
        self.floor = floor

    def forward(self, scores, words):
        shares = scores.softmax(-1)  #> cost device_ms=5
        hot = F.one_hot(words, 6).float()
        told = {told}  #> cost device_ms=9
        return -told.mean()  #> cost device_ms=1

def compute():
    torch.manual_seed(0)
    return Surprise()(torch.randn(8, 6), torch.randint(6, (8,)))

result = compute()
"""
BINARY = """\
import torch

def surprise(p, wanted, floor={small}):
    {first}
    gone = wanted * torch.log({yes}) + (1 - wanted) * torch.log({no})  #> cost device_ms=9
    return -gone.mean()  #> cost device_ms=1

def compute():
    torch.manual_seed(0)
    return surprise(torch.randn(8, 6).sigmoid(), torch.rand(8, 6))

result = compute()
"""


def classes(small: str, told: str) -> str:
    return CLASSES.format(small=small, told=told)


def binary(small: str, first: str = "pass", yes: str = "p + floor", no: str = "1 - p + floor") -> str:
    return BINARY.format(small=small, first=first, yes=yes, no=no)


def edited(text: str) -> str | None:
    """The script after the edit, on a GPU; None where there is none."""
    found = drafts("#> device kind=cuda\n" + text, HandWrittenLoss())
    fixes = [fix for draft in found for fix in draft.fixes]
    return apply(read_example("#> device kind=cuda\n" + text).text, fixes[0].edits) if fixes else None


def outcome(text: str) -> Any:
    scope: dict[str, Any] = {}
    exec(read_example(text).text, scope)
    return scope["result"]


ADDED = "(hot * torch.log(shares + self.floor)).sum(-1)"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (classes("1e-8", ADDED), "cross_entropy"),
        (classes("1e-9", "(shares.clamp(min=self.floor).log() * hot).sum(-1)"), "cross_entropy"),
        (classes("1e-9", "(torch.clamp(shares, self.floor).log() * hot).sum(-1)"), "cross_entropy"),
        (binary("1e-7"), "binary_cross_entropy"),
        (binary("1e-7", "p = p.clamp(floor, 1 - floor)", "p", "1 - p"), "binary_cross_entropy"),
    ],
)
def test_what_is_as_small_as_a_guard_is_dropped(text: str, call: str) -> None:
    new = edited(text)
    assert new is not None
    assert f"F.{call}(" in new or f"functional.{call}(" in new
    torch.testing.assert_close(outcome(new), outcome(text), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        classes("1e-3", ADDED),  # it changes the value
        classes("torch.tensor(1e-8)", ADDED),
        binary("1e-7", "floor = floor * 1e6"),
        binary("0.2"),
    ],
)
def test_larger_numbers_are_a_part_of_the_loss(text: str) -> None:
    assert edited(text) is None
