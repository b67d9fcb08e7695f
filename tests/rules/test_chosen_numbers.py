"""constant-rebuilt where a tensor is filled with a number that torch.where could take."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.rulekit import Context
from warpline.rules.constant_rebuilt import ConstantRebuilt
from warpline.text.edits import apply

SCRIPT = """\
import math
import torch

NONE = -1e9

def masked(scores, edges):
    {first}
    #^ cost step_ms=4 device_ms=4 forward_ms=4
    #^ node aten.ones_like.default function=masked args=[%9] shape=[8192,8192] {kind}
    #^ node aten.mul.Tensor function=masked args=[%0,-1e9] shape=[8192,8192] {kind}
    {second}
    #^ cost step_ms=9 device_ms=9 forward_ms=9; tensor %9 shape={shape}; tensor %8 shape={shape} dtype=bool
    #^ node aten.where.self function=masked args=[%8,%9,%1] shape=[8192,8192]
    {third}
    #^ cost step_ms=9 device_ms=9 forward_ms=9
    #^ node {reader} function=masked args=[{read}] shape=[8192,8192]
"""
PARTS = {
    "first": "none = NONE * torch.ones_like(scores)",
    "second": "scores = torch.where(edges, scores, none)",
    "third": "return scores.softmax(1)",
    "kind": "",
    "shape": "[8192,8192]",
    "reader": "aten._softmax.default",
    "read": "%2,1,False",
}


def edited(**parts: str) -> str | None:
    example = read_example(SCRIPT.format(**PARTS | parts))
    drafts = ConstantRebuilt().find(Context(example.profile, texts(example)))
    edits = [fix.edits for draft in drafts for fix in draft.fixes if fix.applicability == "safe"]
    return apply(example.text, edits[0]) if edits else None


@pytest.mark.parametrize(
    ("made", "number"),
    [
        ("NONE * torch.ones_like(scores)", "NONE"),
        ("torch.ones_like(scores) * -1e9", "-1e9"),
        ("-1e9 * torch.ones(8192, 8192)", "-1e9"),
        ("torch.full_like(scores, float('-inf'))", "float('-inf')"),
        ("torch.full_like(scores, -math.inf)", "-math.inf"),
        ("torch.full((8192, 8192), fill_value=-1e9)", "-1e9"),
        ("torch.full_like(scores, torch.finfo(torch.float32).min)", "torch.finfo(torch.float32).min"),
        ("scores.new_full(scores.shape, -1e9)", "-1e9"),
        ("torch.zeros_like(scores)", "0.0"),
    ],
)
def test_where_takes_the_number(made: str, number: str) -> None:
    new = edited(first=f"none = {made}")
    assert new is not None
    assert "none" not in new
    assert f"    scores = torch.where(edges, scores, {number})\n    return" in new


def test_the_tensor_may_be_written_in_the_call() -> None:
    chosen = "scores = torch.where(edges, scores, NONE * torch.ones_like(scores))"
    lines = SCRIPT.format(**PARTS | {"first": chosen}).splitlines()
    example = read_example("\n".join(line for line in lines if PARTS["second"] not in line))
    (fix,) = [
        fix
        for draft in ConstantRebuilt().find(Context(example.profile, texts(example)))
        for fix in draft.fixes
    ]
    assert "torch.where(edges, scores, NONE)\n" in apply(example.text, fix.edits)


@pytest.mark.parametrize(
    "parts",
    [
        {"third": "return scores.softmax(1) + none"},  # as the text says
        {"reader": "aten.add.Tensor", "read": "%2,%1"},  # as the record says
        {"kind": "dtype=float64"},  # the result would be float32
        {"kind": "dtype=int64"},  # it may be rounded
        {"shape": "[8192,1]"},  # the result would be smaller
        {"first": "none = bias * torch.ones_like(scores)"},  # of no known kind
        {"first": "none = torch.full_like(scores, scores.min())"},
        {"first": "none = NONE * torch.ones_like(scores); scores = scores * 2"},
        {"second": "scores = numpy.where(edges, scores, none)"},
    ],
)
def test_what_is_more_than_a_number_stays(parts: dict[str, str]) -> None:
    assert edited(**parts) is None
