"""Attention in other spellings: letters in any order, a bias in the product, a softmax by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.annotated import read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.text.edits import apply

#: Heads are in the third place.
LETTERS = """\
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5  #> cost step_ms=9 device_ms=9
    scores = scores.masked_fill(~seen[:, None, None, :], -1e9)  #> cost step_ms=9 device_ms=9
    weights = {weights}  #> cost step_ms=9 device_ms=9
    return torch.einsum("{sides}->bihd", {given})  #> cost step_ms=9 device_ms=9
"""
BIASED = """\
    q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
    scores = torch.baddbmm(bias, q, k.mT, alpha={alpha})  #> cost step_ms=9 device_ms=9
    unnormed = torch.exp(scores - scores.amax(-1, keepdim=True){detached})  #> cost step_ms=9 device_ms=9
    return torch.bmm(unnormed / unnormed.sum(-1, keepdim=True), v)  #> cost step_ms=9 device_ms=9
"""
SCALED = """\
    scores = q * q.shape[-1] ** -0.5 @ k.mT  #> cost step_ms=9 device_ms=9
    scores = scores - scores.max(-1, keepdim=True){largest}.detach()  #> cost step_ms=9 device_ms=9
    weights = scores.softmax(-1)  #> cost step_ms=9 device_ms=9
    return (weights @ v).transpose(1, 2).contiguous().view(2, -1, 24)  #> cost step_ms=9 device_ms=9
"""
ROOTED = """\
    scores = q @ k.mT / torch.sqrt(torch.tensor({width}, dtype=torch.float32))  #> cost step_ms=9 device_ms=9
    return scores.softmax(-1) @ v  #> cost step_ms=9 device_ms=9
"""
HEAD = """\
import torch
import torch.nn.functional as F

def mix(q, k, v, seen, bias):
"""
MOVED = (
    "q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), "
    "attn_mask=seen[:, None, None, :]).transpose(1, 2)"
)


def one_line(text: str) -> str:
    """``text`` without line ends, as if a call had room for all arguments."""
    return " ".join(text.split()).replace("( ", "(").replace(", )", ")").replace(" )", ")")


def found(body: str) -> tuple[str, list[Draft]]:
    example = read_example(HEAD + body)
    return example.text, list(HandWrittenAttention().find(Context(example.profile, texts(example))))


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (
            LETTERS.format(weights=weights, sides=sides, given=given),
            f"    return F.scaled_dot_product_attention({MOVED}",
        )
        for weights in (
            "scores.softmax(-1)",
            "scores.softmax(dim=3)",
            "torch.exp(scores - scores.logsumexp(-1, keepdim=True))",
        )
        for sides, given in (
            ("bhij,bjhd", "weights, v"),
            ("bjhd,bhij", "v, weights"),
            ("bhij,bjhd", "[weights, v]"),
        )
    ]
    + [
        (ROOTED.format(width=width), f"    return F.scaled_dot_product_attention(q, k, v{scale})")
        for width, scale in (("len(bias)", ", scale=len(bias) ** -0.5"), ("k.shape[-1]", ""))
    ]
    + [
        (
            BIASED.format(alpha=alpha, detached=detached),
            f"    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias{scale})",
        )
        for alpha, scale in (("q.size(-1) ** -0.5", ""), ("0.2", ", scale=0.2"))
        for detached in ("", ".detach()")
    ]
    + [
        (
            SCALED.format(largest=largest),
            "    return (F.scaled_dot_product_attention(q, k, v)).transpose(1, 2)"
            ".contiguous().view(2, -1, 24)",
        )
        for largest in (".values", "[0]")
    ],
)
def test_each_spelling_gets_the_same_call(body: str, call: str) -> None:
    text, (draft,) = found(body)
    after = apply(text, draft.fixes[0].edits)
    assert one_line(after).endswith(one_line(call))
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 5, 3, 8), torch.randn(2, 7, 3, 8), torch.randn(2, 7, 3, 8)
    if "bihd" not in body:
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    seen = torch.arange(7) < torch.tensor([[4], [6]])
    results = []
    for code in (text, after):
        names: dict[str, Any] = {}
        exec(code, names)
        results.append(
            names["mix"](q, k, v, seen, torch.randn(5, 7, generator=torch.Generator().manual_seed(1)))
        )
    torch.testing.assert_close(*results)


@pytest.mark.parametrize(
    "body",
    [
        # Over the queries.
        LETTERS.format(weights="scores.softmax(dim=2)", sides="bhij,bjhd", given="weights, v"),
        # Nothing of the keys is summed.
        LETTERS.format(weights="scores.softmax(-1)", sides="bhij,bihd", given="weights, q"),
        # The largest of another dimension, or its place, is no constant of a row.
        SCALED.format(largest="[1]"),
        BIASED.format(alpha="0.2", detached="").replace("amax(-1", "amax(-2"),
        BIASED.format(alpha="0.2", detached="").replace("unnormed.sum(-1", "unnormed.sum(-2"),
        BIASED.format(alpha="0.2", detached="").replace("unnormed.sum(-1", "scores.sum(-1"),
    ],
)
def test_what_only_looks_alike_is_left_alone(body: str) -> None:
    assert [draft.fixes for _, drafts in [found(body)] for draft in drafts if draft.fixes] == []


def test_exponentials_that_are_used_again_stay() -> None:
    body = BIASED.format(alpha="0.2", detached="").replace("    return", "    out =")
    _, (draft,) = found(body + "    return out, unnormed\n")
    assert not draft.fixes


@pytest.mark.parametrize(
    ("bias", "mask"), [("[5,7]", "attn_mask=bias"), ("[6,5,7]", "attn_mask=bias.unsqueeze(1)")]
)
def test_scores_of_three_dimensions_get_one_for_heads(bias: str, mask: str) -> None:
    """The fused kernels take four."""
    ops = (
        f"    #^ op aten::baddbmm shapes=[{bias},[6,5,8],[6,8,7]] device_ms=1\n",
        "    #^ op aten::exp shapes=[[6,5,7]] device_ms=1\n",
    )
    lines = BIASED.format(alpha="0.2", detached="").splitlines(keepends=True)
    text, (draft,) = found(lines[0] + lines[1] + ops[0] + lines[2] + ops[1] + lines[3])
    after = apply(text, draft.fixes[0].edits)
    wanted = f"q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1), {mask}, scale=0.2"
    assert one_line(after).endswith(f" return F.scaled_dot_product_attention({wanted}).squeeze(1)")
    results = []
    q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8)
    given = torch.randn(*map(int, bias.strip("[]").split(",")))
    for code in (text, after):
        names: dict[str, Any] = {}
        exec(code, names)
        results.append(names["mix"](q, k, v, None, given))
    torch.testing.assert_close(*results)


COUNTED = """\
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / 4  #> cost step_ms=9 device_ms=9
    share = torch.softmax(scores + bias, dim=3)  #> cost step_ms=9 device_ms=9
    {record}
    return torch.einsum("bhij,bhjd->bhid", share, v)  #> cost step_ms=9 device_ms=9
"""


@pytest.mark.parametrize(("shape", "written"), [("[2,4,8,8]", True), ("[2,4,8,8,3]", False), ("", False)])
def test_a_dimension_counted_from_the_front_is_the_last_one_of_the_record(shape: str, written: bool) -> None:
    record = f"#^ node aten._softmax.default function=mix args=[%9,3,False] shape={shape}"
    text, drafts = found(COUNTED.format(record=record if shape else "").replace("    \n", ""))
    calls = [apply(text, draft.fixes[0].edits) for draft in drafts if draft.fixes]
    assert bool(calls) is written
    assert all("return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1 / 4)" in one
               or "attn_mask=bias, scale=" in one for one in calls)  # fmt: skip
