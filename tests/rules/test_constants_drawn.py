"""constant-rebuilt says nothing of what two steps have in common because they drew the same number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.constant_rebuilt import ConstantRebuilt

SCRIPT = """\
import random
import numpy as np
import torch

views = torch.rand(4, 8192, 3)
for at, x in enumerate(batches):
    which = {number}
    view = {chosen}
    #^ cost step_ms=1 device_ms=1; tensor %9 shape=[4,8192,3]
    #^ node aten.select.int args=[%9,0,2] shape=[8192,3]
    rays = view.softmax(1).log()
    #^ cost step_ms=9 device_ms=9
    #^ node aten._softmax.default args=[%0,1,False] shape=[8192,3]
    #^ node aten.log.default args=[%1] shape=[8192,3]
    train(rays * x)
    #^ cost device_ms=30; tensor %8 shape=[8192,3]; node aten.mul.Tensor args=[%2,%8] shape=[8192,3]
"""


@pytest.mark.parametrize(
    ("number", "chosen", "lines"),
    [
        ("2", "views[which]", [9]),
        ("random.randrange(4)", "views[which]", []),
        ("int(np.random.choice(4))", "views[which]", []),
        ("2", "views[torch.randint(4, ()).item()]", []),
        ("random.randrange(4)", "views[2]", [9]),
    ],
)
def test_what_is_computed_of_a_drawn_entry(number: str, chosen: str, lines: list[int]) -> None:
    example = read_example(SCRIPT.format(number=number, chosen=chosen))
    facts = example.profile.facts
    facts = replace(facts, dataflow=replace(facts.dataflow, again=(0, 1, 2)))
    context = Context(replace(example.profile, facts=facts), texts(example))
    assert [draft.line for draft in ConstantRebuilt().find(context)] == lines


OUTSIDE = """\
import random
import numpy as np
import torch

for at, x in enumerate(batches):
    {maker}  #> cost step_ms=9 calls=1
    loss = (torch.from_numpy(image) * x).mean()
    #^ cost device_ms=9; tensor %8 shape=[512,512]; tensor %9 shape=[512,512] remade=true
    #^ node aten.mul.Tensor args=[%9,%8] shape=[512,512]; node aten.mean.default args=[%0] shape=[]
    train(loss)  #> cost device_ms=30
"""


@pytest.mark.parametrize(
    ("maker", "lines"),
    [
        ("image = np.asarray(paint(512))", [6]),
        ("image = images[random.randrange(4)]", []),
    ],
)
def test_an_array_that_is_drawn(maker: str, lines: list[int]) -> None:
    example = read_example(OUTSIDE.format(maker=maker))
    context = Context(example.profile, texts(example))
    assert [draft.line for draft in ConstantRebuilt().find(context)] == lines
