"""Cross entropy of labels that are smoothed over the other classes: the edit has the same values and
gradients, and is not offered where the labels are smoothed in another way."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.rules.test_no_breakage import fixed

CODE = """\
import torch
import torch.nn.functional as F

def compute(scores, labels, share, pad):
    count = {count}
    hot = {hot}
    soft = {soft}  #> cost device_ms=4
    logs = F.log_softmax(scores, dim=1)
    #^ cost device_ms=4; op aten::log_softmax device_ms=4 shapes=[[{sizes}]]
    real = {real}  #> node aten.ne.Scalar args=[%9,0] shape=[24]; tensor %9 shape=[24]
    each = {each}  #> cost device_ms=3
    return {result}  #> cost device_ms=1
"""
USUAL = {
    "count": "scores.size(1)",
    "hot": "torch.zeros_like(scores).scatter(1, labels.view(-1, 1), 1)",
    "soft": "hot * (1 - share) + (1 - hot) * share / (count - 1)",
    "sizes": "24,6",
    "real": "labels.ne(pad)",
    "each": "-(soft * logs).sum(dim=1)",
    "result": "each.masked_select(real).sum()",
}
MADE = "torch.full_like(scores, share / (count - 1)).scatter_(1, labels.unsqueeze(1), 1 - share)"
SMOOTHED = "label_smoothing=share * count / (count - 1)"


def _outcome(code: str) -> list[torch.Tensor]:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    torch.manual_seed(0)
    scores, labels = torch.randn(24, 6, requires_grad=True), torch.randint(6, (24,))
    result = namespace["compute"](scores, labels, 0.3, 2)
    return [result, *torch.autograd.grad(result, scores)]


def edited(changed: dict[str, str]) -> tuple[str, str]:
    code = CODE.format(**{**USUAL, **changed})
    (told,) = fixed(code, "hand-written-loss")
    return code, told


@pytest.mark.parametrize(
    ("changed", "smoothing", "reduced"),
    [
        ({}, SMOOTHED, "sum"),
        ({"result": "(each * real).sum()"}, SMOOTHED, "sum"),
        ({"result": "(each * real.float()).sum() / real.float().sum()"}, "", ""),
        ({"result": "each[real].sum()", "real": "~(pad == labels)"}, SMOOTHED, "sum"),
        ({"soft": "(1 - hot) * (share / (count - 1)) + hot * (1 - share)"}, SMOOTHED, "sum"),
        ({"soft": "share * (1.0 - hot) / (count - 1) + (1.0 - share) * hot"}, SMOOTHED, "sum"),
        ({"soft": MADE}, SMOOTHED, "sum"),
        ({"soft": MADE.replace("full_like(scores, share / (count - 1))",
                               "zeros_like(scores).fill_(share / (count - 1))")}, SMOOTHED, "sum"),
        ({"hot": "torch.zeros(len(labels), count).scatter_(1, labels[:, None], 1.0)"}, SMOOTHED, "sum"),
        ({"hot": "F.one_hot(labels, count)"}, SMOOTHED, "sum"),
        ({"count": "scores.shape[-1]"}, SMOOTHED, "sum"),
        ({"count": "6", "hot": "F.one_hot(labels, 6)", "soft": "hot * 0.9 + (1 - hot) * 0.1 / (count - 1)"},
         "label_smoothing=0.12", "sum"),
        ({"count": "6", "hot": "F.one_hot(labels, 6)"}, "label_smoothing=share * 6 / (6 - 1)", "sum"),
        ({"soft": "hot * 0.75 + (1 - hot) * 0.25 / (count - 1)"},
         "label_smoothing=0.25 * count / (count - 1)", "sum"),
        ({"result": "each.mean()"}, SMOOTHED, ""),
        ({"soft": "hot"}, "", "sum"),
    ],
)  # fmt: skip
def test_labels_that_are_smoothed_over_the_others(
    changed: dict[str, str], smoothing: str, reduced: str
) -> None:
    code, told = edited(changed)
    if "/ real" in code:  # a mean over the rows that stay
        smoothing = SMOOTHED
    last = told[told.index("return ") :]
    assert "F.cross_entropy(" in last and smoothing in last and "log_softmax" not in told
    assert ("ignore_index=pad" in last) == ("mean" not in code) and bool(reduced) == ("reduction" in last)
    for one, other in zip(_outcome(code), _outcome(told), strict=True):
        torch.testing.assert_close(one, other)


def test_it_is_told_where_each_row_is_computed() -> None:
    from tests.annotated import read_example, texts
    from warpline.diagnosis.diagnose import diagnose

    example = read_example(CODE.format(**USUAL))
    (found,) = diagnose(example.profile, texts(example)).findings
    assert example.text.splitlines()[found.line - 1].startswith("    each = ")


@pytest.mark.parametrize(
    "changed",
    [
        {"soft": "hot * (1 - share) + (1 - hot) * share / count"},
        {"soft": "hot * (1 - share) + (1 - hot) * share / (count - 2)"},
        {"soft": "hot * share + (1 - hot) * share / (count - 1)"},
        {"soft": "hot * (1 - share) + (2 - hot) * share / (count - 1)"},
        {"soft": "hot * (1 - share) - (1 - hot) * share / (count - 1)"},
        {"soft": MADE.replace("1 - share)", "share)")},
        {"soft": MADE.replace("full_like", "rand_like")},
        {"hot": "torch.zeros_like(scores).scatter(1, labels.view(-1, 1), 2)"},
        {"hot": "torch.ones_like(scores).scatter(1, labels.view(-1, 1), 1)"},
        {"hot": "torch.zeros_like(scores).scatter(0, labels.view(1, -1), 1)"},
        {"real": "labels.ne(pad)  #^ node aten.ne.Tensor args=[%9,%8] shape=[24]"},
        {"count": "scores.shape[-1]", "sizes": "24,6,3"},
        {"each": "(soft * logs).sum(dim=1)"},
    ],
)
def test_labels_that_are_smoothed_otherwise_stay(changed: dict[str, str]) -> None:
    code = CODE.format(**{**USUAL, **changed})
    if "#^" in changed.get("real", ""):
        code = code.replace("  #^ node", "\n    #^ node").replace(
            "  #> node aten.ne.Scalar args=[%9,0] shape=[24]; tensor", "; tensor"
        )
    found = fixed(code, "hand-written-loss")
    assert not any("F.cross_entropy(" in one and "label_smoothing=" in one for one in found)


#: Labels that a block without gradients makes of settings of the class: in the run a row adds up to one.
CLASS = """\
import torch
from torch import nn

class Softened(nn.Module):
    def __init__(self, classes, share, axis=-1):
        super().__init__()
        self.right = {right}
        self.share, self.classes, self.axis = share, classes, axis

    def forward(self, scores, labels):
        logs = scores.log_softmax(dim=self.axis)
        #^ cost device_ms=4; tensor %9 shape=[24,6]; op aten::log_softmax device_ms=4 shapes=[[24,6]]
        #^ node aten._log_softmax.default args=[%9,-1,False] shape=[24,6] of=scores.log_softmax(dim=self.axis)
        with torch.no_grad():
            aim = torch.zeros_like(logs)
            aim.fill_(self.share / (self.classes - 1))
            #^ cost device_ms=3; node aten.fill.Scalar args=[%8,0.06] shape=[24,6]
            aim.scatter_(1, labels.unsqueeze(1), self.right)
            #^ cost device_ms=3; node aten.scatter.value args=[%1,1,%7,{given}] shape=[24,6]
        return torch.mean(torch.sum(-aim * logs, dim=self.axis))  #> cost device_ms=4
"""


def _gradients(code: str) -> list[torch.Tensor]:
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    torch.manual_seed(0)
    scores, labels = torch.randn(24, 6, requires_grad=True), torch.randint(6, (24,))
    result = namespace["Softened"](6, 0.3)(scores, labels)
    return [result, *torch.autograd.grad(result, scores)]


def test_labels_by_settings_of_the_class_have_the_numbers_of_the_run() -> None:
    code = CLASS.format(right="1.0 - share", given=0.7)
    (told,) = fixed(code, "hand-written-loss")
    assert "no_grad" not in told and "log_softmax" not in told
    assert "label_smoothing=self.share / (self.classes - 1) * scores.shape[-1]" in told
    for one, other in zip(_gradients(code), _gradients(told), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("right", "given"), [("1.0 - share", 0.6), ("nn.Parameter(torch.tensor(0.7))", 0.7)])
def test_rows_that_do_not_add_up_to_one_or_are_learned_stay(right: str, given: float) -> None:
    found = fixed(CLASS.format(right=right, given=given), "hand-written-loss")
    assert not any("F.cross_entropy(scores" in one for one in found)
