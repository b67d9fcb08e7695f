"""A model is asked for float64 by name, and its data is float64 because NumPy's arrays are."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.text.edits import apply

SCRIPT = """\
import torch
from loans import load

x, y = load()
x = torch.from_numpy(x).cuda()
y = torch.from_numpy(y).cuda()
model = torch.nn.Linear(512, 512).double().cuda()
for step in range(100):
    loss = (model(x) - y).square().mean()
    #^ cost device_ms=9; op aten::mm device_ms=9 dtypes=double,double shapes=[[64,512],[512,512]]
    #^ node aten.mm.default args=[%2,%3] shape=[64,512]; node aten.sub.Tensor args=[%0,%4] shape=[64,512]
    #> tensor %2 shape=[64,512] dtype=float64; tensor %3 shape=[512,512] dtype=float64 parameter=true
    #> tensor %4 shape=[64,512] dtype=float64
"""


def drafted(script: str) -> tuple[str, Draft]:
    example = read_example(script)
    rule = rule_named("float64-on-device")
    assert rule is not None
    (draft,) = rule.find(Context(example.profile, texts(example)))
    return example.text, draft


def test_model_and_data_are_cast_together() -> None:
    text, draft = drafted(SCRIPT)
    changed = apply(text, draft.fixes[0].edits)
    assert "from_numpy(x).float().cuda()" in changed
    assert "from_numpy(y).float().cuda()" in changed
    assert "Linear(512, 512).float().cuda()" in changed


def test_arrays_that_may_be_labels_are_not_cast() -> None:
    _, draft = drafted(SCRIPT.replace("%4 shape=[64,512] dtype=float64", "%4 shape=[64,1] dtype=int64"))
    assert not draft.fixes
    assert "whole numbers" in draft.message


@pytest.mark.parametrize("cast", [".double()", ".to(torch.float64)"])
def test_arrays_that_are_cast_by_name_are_cast_once(cast: str) -> None:
    script = SCRIPT.replace("from_numpy(x)", f"from_numpy(x){cast}").replace(
        "(y).cuda()", "(y).float().cuda()"
    )
    text, draft = drafted(script)
    changed = apply(text, draft.fixes[0].edits)
    assert ".float().float()" not in changed
    assert "double" not in changed
    assert "float64" not in changed
