"""Where ``checkpoint`` is called, if torch runs no operator there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context
from warpline.rules.needless_checkpointing import NeedlessCheckpointing

SCRIPT = """\
#> memory free_bytes=60000000000
import torch.utils.checkpoint as saving

class Stage(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x @ self.w)
        #^ cost step_ms=60 device_ms=60 recompute_ms=20
        #^ op aten::mm phase=recompute count=8 device_ms=9 shapes=[[512,512],[512,512]] dtypes=float

for x in batches:
    y = {call}  #> cost step_ms=0.1
    keep(y)  #> cost step_ms=0.1
"""


def places(call: str, called: bool = True) -> list[int]:
    example = read_example(SCRIPT.format(call=call))
    function = (FILE, "Stage.forward")
    lines = tuple(
        replace(cost, function="Stage.forward")
        if cost.recompute_ms
        else replace(cost, called=(function,) if called and cost.line == 8 else ())
        for cost in example.profile.lines
    )
    found = NeedlessCheckpointing().find(Context(replace(example.profile, lines=lines), texts(example)))
    return [draft.line for draft in found]


@pytest.mark.parametrize("name", ["checkpoint(", "checkpoint_sequential(stages, 4, "])
def test_the_line_that_calls_what_is_computed_again(name: str) -> None:
    assert places(f"saving.{name}x)") == [8]


def test_another_call_of_the_same_function_is_not_meant() -> None:
    assert places("saved(stage, x)") == [5]


def test_a_checkpoint_that_calls_nothing_of_it_is_not_meant() -> None:
    assert places("trainer.checkpoint(x)", called=False) == [5]
