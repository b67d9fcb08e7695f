"""Containers that grow in each step, of which the program reads the newest entries only."""

from __future__ import annotations

from typing import Any

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.memory_growth import MemoryGrowth
from warpline.text.edits import apply

torch = pytest.importorskip("torch")

CODE = """\
#> device kind={device}; memory growth_bytes_per_step=52428800 peak_bytes=10000000000 free_bytes=20000000000
import collections
import torch

FEW = 3

class Level:
    def __init__(self, latest):
        self.latest = latest
        self.maps = {made}

    def on_step(self, given):
        self.maps.append(given.abs())  #> cost calls=1 device_ms=20 kept_bytes=52428800

    def on_end(self):
        {more}
        return [one.sum().item() for one in {read}]

def run(level):
    for step in range(9):
        level.on_step(torch.full((2, 2), -1.0 * step))  #> cost calls=1
    return level.on_end()
"""
PARTS = {"device": "cuda", "made": "collections.deque()", "more": "pass"}
PARTS |= {"read": "list(self.maps)[-self.latest:]"}


def edited(**changed: str) -> tuple[str, list[str], str]:
    """The script, the script after each edit that is no text only, and the message of the finding, if any."""
    example = read_example(CODE.format(**{**PARTS, **changed}))
    drafts = list(MemoryGrowth().find(Context(example.profile, texts(example))))
    fixes = [fix for draft in drafts for fix in draft.fixes]
    return example.text, [apply(example.text, fix.edits) for fix in fixes], "".join(d.message for d in drafts)


def _outcome(code: str) -> Any:
    scope: dict[str, Any] = {}
    exec(code, scope)
    return scope["run"](scope["Level"](2))


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("changed", "length"),
    [
        ({}, "self.latest"),
        ({"made": "[]"}, "self.latest"),
        ({"read": "tuple(self.maps)[-FEW:]"}, "FEW"),
        ({"read": "list(self.maps)[-4:]", "more": "torch.stack((self.maps[-1], self.maps[-6]))"}, "6"),
        ({"read": "[self.maps[-1]]"}, "1"),
    ],
)
def test_as_many_are_kept_as_are_read(device: str, changed: dict[str, str], length: str) -> None:
    before, (after,), message = edited(device=device, **changed)
    assert f"self.maps = collections.deque(maxlen={length})" in after
    assert "newest entr" in message
    assert _outcome(after) == _outcome(before)


@pytest.mark.parametrize(
    "changed",
    [
        {"read": "self.maps"},
        {"read": "list(self.maps)[:self.latest]"},
        {"read": "list(self.maps)[-self.latest:5]"},
        {"read": "list(self.maps)[-1:]", "more": "print(len(self.maps))"},
        {"read": "list(self.maps)[-1:]", "more": "save(self.maps)"},
        {"read": "list(self.maps)[-1:]", "more": "other = self.maps"},
        {"read": "list(self.maps)[-1:]", "more": "getattr(self, 'maps')"},
        {"read": "list(self.maps)[-1:]", "more": "self.maps.appendleft(self.latest)"},
        {"more": "self.latest = 5"},
        {"more": "self.latest += 5"},
        {"more": "self.latest, other = 5, 6"},
        {"more": "print(list(self.maps)[-FEW:])"},  # two numbers
        {"read": "list(self.maps)[-5:]", "more": "print(list(self.maps)[-self.latest:])"},
        {"read": "list(self.maps)[-0:]"},  # all of it
        {"read": "list(self.maps)[-latest:]", "more": "latest = self.latest"},
        {"made": "collections.deque([torch.ones(1)])"},
        {"made": "collections.deque()\n        self.latest = latest + 1"},
    ],
)  # fmt: skip
def test_nothing_is_dropped_that_something_may_read(changed: dict[str, str]) -> None:
    _, after, _ = edited(**changed)
    assert after == []
