"""The call that a norm becomes, by the types of its input, its gain and its result: another type than these
have, or two types in one call, would cost what the fused kernel saves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.annotated import FILE, read_example, texts
from warpline.model.change import Replace
from warpline.rulekit import Context, Draft
from warpline.rules.hand_written_norm import HandWrittenNorm
from warpline.text.edits import apply

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = 1e-5

"""
#: Casts its input, and its result back: the gain is multiplied in float32.
BACK = (
    HEAD
    + """\
    def scaled(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=9; op aten::mean shapes=[[4,6,8]] dtypes=float

    def forward(self, x):
        return (self.scaled(x.float()) * self.gain).type_as(x)
        #^ cost device_ms=4; op aten::_to_copy shapes=[[4,6,8]] dtypes=KIND
        #^ op aten::mul shapes=[[4,6,8],[8]] dtypes=float,float
"""
)
#: The same, but the gain in float32 is multiplied last: it makes the result float32.
LAST = (
    HEAD
    + """\
    def forward(self, x):
        kind = x.dtype
        wide = x.to(torch.float32)  #> cost device_ms=2; op aten::_to_copy shapes=[[4,6,8]] dtypes=KIND
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=9; op aten::mean shapes=[[4,6,8]] dtypes=float
        return self.gain * wide.to(kind)
        #^ cost device_ms=4; op aten::mul shapes=[[8],[4,6,8]] dtypes=float,KIND
"""
)
#: No cast: the root of autocast's float32 makes the result float32.
ROOT = (
    HEAD
    + """\
    def forward(self, x):
        root = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=5; op aten::mean shapes=[[4,6,8]] dtypes=float
        return x * root * self.gain
        #^ cost device_ms=9; op aten::mul shapes=[[4,6,8],[4,6,1]] dtypes=KIND,float
        #^ op aten::mul shapes=[[4,6,8],[8]] dtypes=float,float
"""
)
#: The same with a quotient.
QUOTIENT = (
    ROOT.replace("torch.rsqrt", "torch.sqrt")
    .replace("x * root", "x / root")
    .replace("aten::mul shapes=[[4,6,8],[4,6,1]]", "aten::div shapes=[[4,6,8],[4,6,1]]")
)
LAYER = (
    HEAD
    + """\
    def forward(self, x):
        h = x.float()  #> cost device_ms=2; op aten::_to_copy shapes=[[4,6,8]] dtypes=KIND
        h = h - h.mean(-1, keepdim=True)  #> cost device_ms=4
        h = h / torch.sqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=9; op aten::mean shapes=[[4,6,8]] dtypes=float
        return (h * self.gain).to(x.dtype)
        #^ cost device_ms=4; op aten::mul shapes=[[4,6,8],[8]] dtypes=float,float
"""
)
HALF, WIDE = "c10::BFloat16", "float"
OLD, NEW = "2.11.0", "2.12.1"


def judged(code: str, kind: str, torch_version: str, autocast: bool) -> tuple[str, Draft]:
    word = "true" if autocast else "false"
    run = f"#> manifest torch_version={torch_version}; flags autocast={word}\n"
    example = read_example(run + code.replace("KIND", kind))
    (draft,) = HandWrittenNorm().find(Context(example.profile, texts(example)))
    return example.text, draft


def fixed(code: str, kind: str, torch_version: str = OLD, autocast: bool = False) -> str:
    text, draft = judged(code, kind, torch_version, autocast)
    return apply(text, draft.fixes[0].edits) if draft.fixes else draft.message


@pytest.mark.parametrize(
    ("code", "kind", "torch_version", "autocast", "call"),
    [
        (BACK, WIDE, OLD, True, "return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)"),
        (BACK, HALF, OLD, True, "return F.rms_norm(x, x.shape[-1:], self.gain.to(x.dtype), self.eps)"),
        (BACK, HALF, NEW, False, "return F.rms_norm(x, x.shape[-1:], self.gain.to(x.dtype), self.eps)"),
        (BACK, HALF, NEW, True, "return F.rms_norm(x, x.shape[-1:], self.gain, self.eps).to(x.dtype)"),
        (BACK, WIDE, NEW, True, "return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)"),
        (
            LAST,
            HALF,
            OLD,
            True,
            "F.rms_norm(inner := x.to(torch.float32), inner.shape[-1:], self.gain, self.eps)",
        ),
        (LAST, WIDE, OLD, True, "F.rms_norm(x, x.shape[-1:], self.gain, self.eps)"),
        (ROOT, HALF, OLD, True, "F.rms_norm(inner := x.float(), inner.shape[-1:], self.gain, self.eps)"),
        (QUOTIENT, HALF, OLD, True, "F.rms_norm(inner := x.float(), inner.shape[-1:], self.gain, self.eps)"),
        (LAYER, HALF, OLD, True, "F.layer_norm(x, x.shape[-1:], self.gain, eps=self.eps).to(x.dtype)"),
        (LAYER, HALF, OLD, False, "F.layer_norm(x, x.shape[-1:], self.gain.to(x.dtype), eps=self.eps)"),
    ],
)
def test_the_call_by_types(code: str, kind: str, torch_version: str, autocast: bool, call: str) -> None:
    text = fixed(code, kind, torch_version, autocast)
    assert call in text, text


@pytest.mark.parametrize("code", [BACK, LAST, ROOT, QUOTIENT, LAYER])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_values_types_and_gradients_stay(code: str, kind: torch.dtype, version: str) -> None:
    name = {torch.float32: WIDE, torch.bfloat16: HALF}[kind]
    text, _ = judged(code, name, version, True)
    before, after = outcome(text, kind), outcome(fixed(code, name, version, True), kind)
    for old, new in zip(before, after, strict=True):
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        most = 1e-5 if kind == torch.float32 else 3e-2
        torch.testing.assert_close(new, old, rtol=most, atol=most)


def outcome(text: str, kind: torch.dtype) -> list[torch.Tensor]:
    namespace: dict[str, Any] = {"__name__": "norm"}
    exec(compile(text, FILE, "exec"), namespace)
    torch.manual_seed(1)
    module, x = namespace["Norm"](8), torch.randn(4, 6, 8).to(kind).requires_grad_()
    torch.nn.init.uniform_(module.gain, 0.5, 1.5)
    result = module(x)
    return [result, *torch.autograd.grad(result.float().square().sum(), [x, module.gain])]


def test_a_gain_in_half_precision_beside_float32_is_refused() -> None:
    code = LAST.replace("dtypes=float,KIND", "dtypes=KIND,float")
    assert "have different types" in fixed(code, HALF)


def test_a_gain_in_half_precision_like_the_input_is_not_cast() -> None:
    code = LAST.replace("dtypes=float,KIND", "dtypes=KIND,KIND")
    assert "return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)" in fixed(code, HALF)


def test_what_is_tried_has_the_types_of_the_call() -> None:
    def words(*given: Any) -> tuple[str, ...]:
        change = judged(*given)[1].change
        assert isinstance(change, Replace)
        return change.options

    assert words(BACK, HALF, OLD, True) == ("cast",)
    assert words(BACK, HALF, NEW, True) == ("cast", "wide")
    assert words(BACK, WIDE, NEW, True) == ()
    assert words(LAST, HALF, OLD, True) == ("cast", "mixed")


def test_a_helper_with_two_callers_is_edited_itself() -> None:
    code = (
        BACK
        + """
    def plain(self, x):
        return self.scaled(x)
"""
    )
    text = fixed(code, HALF)
    assert "return F.rms_norm(x, x.shape[-1:], eps=self.eps)" in text
    assert "return (self.scaled(x.float()) * self.gain).type_as(x)" in text


def test_a_private_helper_goes_unless_another_file_may_call_it() -> None:
    code = BACK.replace("scaled", "_scaled")
    run = f"#> manifest torch_version={OLD}\n"
    example = read_example(run + code.replace("KIND", HALF))
    for others, left in (({}, 0), ({"/example/other.py": "y = norm._scaled(x)\n"}, 1)):
        profile = replace(example.profile, sources={**example.profile.sources, **others})
        (draft,) = HandWrittenNorm().find(Context(profile, texts(example)))
        assert apply(example.text, draft.fixes[0].edits).count("def _scaled") == left
    assert fixed(BACK, HALF).count("def scaled") == 1


def test_the_lines_of_the_helper_are_part_of_its_cost() -> None:
    _, draft = judged(BACK, HALF, OLD, True)
    assert draft.cost_ms == 13
    assert (draft.line, draft.cause.line) == (15, 12)
