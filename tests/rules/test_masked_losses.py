"""Cross entropy over several statements, of the rows that a mask leaves: the edit has the same values and
gradients, and is not offered where a mask leaves other rows than the call would."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.test_no_breakage import fixed

CODE = """\
import torch
import torch.nn.functional as F

PAD = -100

def compute(scores, labels, weights):
    real = {real}
    safe = {safe}
    top = {top}
    whole = {whole}
    #^ cost device_ms=8; op aten::exp device_ms=4 shapes=[[4,6,5]]
    hit = {hit}  #> cost device_ms=2; op aten::gather device_ms=1 shapes=[[4,6,5]]
    return {result}  #> cost device_ms=2
"""

SHIFTED = {
    "real": "labels.ne(0)",
    "safe": "labels",
    "top": "scores.amax(-1, keepdim=True).detach()",
    "whole": "(scores - top).exp().sum(-1).log() + top.squeeze(-1)",
    "hit": "scores.gather(-1, safe[..., None]).squeeze(-1)",
    "result": "(whole - hit).mul(real).sum() / real.sum()",
}
CALL = "F.cross_entropy(scores.flatten(0, -2), labels.flatten(), ignore_index="
PADDED = {"real": "labels != PAD", "safe": "labels.clamp(min=0)"}


def _outcome(code: str, pad: int) -> list[torch.Tensor]:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    torch.manual_seed(0)
    scores = torch.randn(4, 6, 5, requires_grad=True)
    labels = torch.randint(5, (4, 6))
    labels[:, -2:] = pad
    result = namespace["compute"](scores, labels, torch.rand(4, 6))
    return [result, *torch.autograd.grad(result.sum(), scores)]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, f"return {CALL}0)"),
        ({"result": "-((hit - whole) * real.float()).sum() / real.float().sum()"}, f"return {CALL}0)"),
        ({"result": "(whole - hit)[real].mean()"}, f"return {CALL}0)"),
        ({"result": "(real * (whole - hit)).sum()"}, f'return {CALL}0, reduction="sum")'),
        ({"result": "(whole - hit).masked_fill(~real, 0.0).sum() / real.sum()"}, f"return {CALL}0)"),
        ({"result": "torch.where(real, whole - hit, 0.0).sum() / real.sum()"}, f"return {CALL}0)"),
        ({"real": "labels > 0"}, f"return {CALL}0)"),
        ({"real": "~(labels == 0)"}, f"return {CALL}0)"),
        ({"real": "labels.ne(0.0)"}, f"return {CALL}0)"),
        (PADDED, f"return {CALL}PAD)"),
        ({**PADDED, "safe": "labels.masked_fill(~real, 0)"}, f"return {CALL}PAD)"),
        ({**PADDED, "safe": "torch.where(labels == PAD, 0, labels)"}, f"return {CALL}PAD)"),
        ({"result": "torch.where(~real, 0.0, whole - hit).sum() / real.sum()"}, f"return {CALL}0)"),
        (
            {"result": "((whole - hit) * real).sum() / real.sum().clamp(min=1)"},
            f'return {CALL}0, reduction="sum") / real.sum().clamp(min=1)',
        ),
        (
            {"result": "((whole - hit) * weights).sum() / weights.sum()"},
            'return ((F.cross_entropy(scores.flatten(0, -2), labels.flatten(), reduction="none")'
            ".view(labels.shape)) * weights).sum() / weights.sum()",
        ),
        (
            {"result": "(whole - hit).mul(real).sum() / labels.ne(1).sum()"},
            f'return {CALL}0, reduction="sum") / labels.ne(1).sum()',
        ),
        ({"result": "whole - hit"}, 'reduction="none").view(labels.shape)'),
        ({"top": "scores.max(-1, keepdim=True)[0]"}, f"return {CALL}0)"),
        ({"top": "scores.max(-1, keepdim=True).values.detach()"}, f"return {CALL}0)"),
        (
            {"whole": "scores - top - (scores - top).exp().sum(-1, True).log()",
             "hit": "whole.gather(-1, safe.unsqueeze(-1)).squeeze(-1)",
             "result": "-(hit * real).sum() / real.sum()"},
            f"return {CALL}0)",
        ),
    ],
)  # fmt: skip
def test_a_mean_of_the_rows_that_a_mask_leaves(changed: dict[str, str], told: str) -> None:
    code = CODE.format(**{**SHIFTED, **changed})
    (after,) = fixed(code, "hand-written-loss")
    assert told in after
    pad = -100 if "PAD" in changed.get("real", "") else 0
    for old, new in zip(_outcome(code, pad), _outcome(after, pad), strict=True):
        torch.testing.assert_close(new, old)


@pytest.mark.parametrize(
    "changed",
    [
        {"real": "labels.ne(weights)"},  # another number for each row
        {"real": "labels > 1"},  # leaves out two classes
        {"real": "labels.eq(0)"},  # leaves one class only
        {"real": "labels >= 0", "safe": "labels.clamp(min=0)"},  # leaves out all labels below 0
        {**PADDED, "real": "labels > PAD"},
        {"real": "weights.ne(0)"},
        {"result": "(whole - hit).mul(real).mean()"},  # all rows count
        {"result": "(hit - whole).mul(real).sum() / real.sum()"},  # its negative
        {"result": "(whole - hit).masked_fill(real, 0.0).sum()"},
        {"top": "scores.amax(0, keepdim=True)"},  # another number for each class
        {"whole": "(scores - top).exp().sum(-1).log()"},  # of other scores than the class's
    ],
)
def test_other_masks_and_other_largest_numbers_are_no_such_mean(changed: dict[str, str]) -> None:
    found = fixed(CODE.format(**{**SHIFTED, **changed}), "hand-written-loss")
    assert not [told for told in found if "ignore_index" in told or 'reduction="sum"' in told]
    for told in found:  # of each row it is a cross entropy all the same
        code = CODE.format(**{**SHIFTED, **changed})
        pad = -100 if "PAD" in str(changed) else 0
        for old, new in zip(_outcome(code, pad), _outcome(told, pad), strict=True):
            torch.testing.assert_close(new, old)


@pytest.mark.parametrize(
    "kept", ["scores.gather(-1, safe[..., None])", "scores.gather(-1, safe[..., None]).view(-1)"]
)
def test_what_keeps_a_dimension_more_is_not_taken_row_by_row(kept: str) -> None:
    assert fixed(CODE.format(**{**SHIFTED, "hit": kept}), "hand-written-loss") == []
