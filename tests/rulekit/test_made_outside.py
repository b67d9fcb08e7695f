"""Lines that make, outside torch, what torch gets again in each step."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.constant_rebuilt import ConstantRebuilt

HELPER = """\
import numpy as np
import torch

def bands(low, high):
    edges = np.linspace(low, high, 90)  #> cost step_ms=2 calls=1 function=bands
    bank = np.zeros((88, 512))
    for at in range(88):  #> cost step_ms=1 calls=89 function=bands
        bank[at] = np.interp(np.arange(512), edges[at : at + 3], [0, 1, 0])
        #^ cost step_ms=9 calls=88 function=bands
    return {returned}

for x in batches:
    {call}
    #^ cost step_ms=1 calls=1 called='[["/example/train.py","bands"]]'
    {above}
    loss = ({read} @ x).log().mean()
    #^ cost device_ms=9; tensor %8 shape=[512,99]; tensor %9 shape=[88,512] remade=true
    #^ {called} node aten.mm.default args=[%9,%8] shape=[88,99]; node aten.mean.default args=[%0] shape=[]
    train(loss)  #> cost device_ms=30
"""
CALLED = 'cost called=\'[["/example/train.py","bands"]]\';'
TENSOR, ARRAY = "torch.from_numpy(bank).float()", "bank.astype(np.float32)"


def found(code: str) -> list[tuple[int, float]]:
    example = read_example(code)
    context = Context(example.profile, texts(example))
    drafts = ConstantRebuilt().find(context)
    return [(draft.line, round(draft.cost_ms or 0.0, 1)) for draft in drafts]


def helper(call: str, read: str, returned: str = ARRAY, above: str = "", called: str = "") -> str:
    return HELPER.format(call=call, read=read, returned=returned, above=above, called=called)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (helper("bank = bands(40.0, 8000.0)", "torch.from_numpy(bank)"), [(12, 13)]),
        (helper("bank = bands(40.0, 8000.0)", "bank", TENSOR), [(12, 13)]),
        (
            helper("bank = bands(40.0, 8000.0)", "bank", above="bank = torch.from_numpy(bank)"),
            [(12, 13)],
        ),
        # What the statement before makes is read once more: it may be for something else.
        (helper("bank = bands(40.0, 8000.0)", "torch.tensor(bank)", above="show(bank)"), []),
        (helper("pass", "bands(40.0, 8000.0)", TENSOR, called=CALLED), [(14, 12)]),
        # The array goes to something else that the line calls.
        (helper("pass", "given(bands(40.0, 8000.0))", called=CALLED), []),
    ],
)
def test_an_array_of_a_helper(code: str, expected: list[tuple[int, float]]) -> None:
    assert found(code) == expected


BOXES = """\
import torch

for x in batches:
    corners = []  #> cost step_ms=0.1 calls=1
    for row in range(64):  #> cost step_ms=1 calls=65
        corners += [row / 64, 1 - row / 64]  #> cost step_ms=9 calls=64
    corners = torch.tensor(corners)
    #^ cost step_ms=1 calls=1; tensor %9 shape=[128] remade=true; node aten.mul.Tensor args=[%9,2] shape=[128]
    near = x - corners {used}
    #^ cost device_ms=9; tensor %8 shape=[9,128]; node aten.sub.Tensor args=[%8,%0] shape=[9,128]
    train(near)  #> cost device_ms=30
"""


def test_a_list_that_grows_in_a_loop() -> None:
    assert [line for line, _ in found(BOXES.format(used=""))] == [6]


def test_a_line_below_which_a_step_computes_with_its_data() -> None:
    code = helper("bank = bands(40.0, 8000.0)", "torch.from_numpy(bank)")
    computed = "node aten.mul.Tensor args=[%8,%8] shape=[512,99] function=bands"
    assert not found(code.replace("calls=88 function=bands", f"calls=88 function=bands; {computed}"))
