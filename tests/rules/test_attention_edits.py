"""Attention: no edit where results would change by more than rounding, or the program would fail."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.change import Replace
from warpline.rulekit import Context
from warpline.rules.hand_written_attention import HandWrittenAttention
from warpline.text.edits import apply

MASKED = """\
#> steps step_ms=40
import torch
import torch.nn.functional as F
class Block(torch.nn.Module):
    def __init__(self, n):
        self.register_buffer("seen", {buffer})
    def forward(self, q, k, v):
        t = q.shape[-2]
        return F.scaled_dot_product_attention(q, k, v, {mask})
        #^ cost device_ms=24; op aten::_scaled_dot_product_efficient_attention device_ms=24
        #^ op aten::scaled_dot_product_attention shapes=[{heads},{shape}] dtypes=float,float,float,{dtype}
"""
FALLING_BACK = """\
#> steps step_ms=40
import torch.nn.functional as F
def attend({parameters}):
    return F.scaled_dot_product_attention({arguments})
    #^ cost device_ms=24; op aten::_scaled_dot_product_attention_math; op aten::bmm device_ms=24
"""
CALL = "    #^ op aten::scaled_dot_product_attention shapes=[{shapes}] dtypes=float\n"
HEADS, BATCH = "[8,4,512,64]", "[8,512,64]"
LOWER = "torch.tril(torch.ones(n, n)).bool()"


def edited(code: str) -> str | None:
    """The call with the edit that is offered, None without one."""
    example = read_example(code)
    found = [
        fix
        for one in diagnose(example.profile, texts(example)).findings
        for fix in one.fixes
        if one.rule == "slow-attention-kernel"
    ]
    if not found:
        return None
    text = texts(example)(found[0].edits[0].file) or ""
    after = apply(text, list(found[0].edits))
    return after[after.index("F.scaled") :].rstrip().removeprefix("F.scaled_dot_product_attention")


def masked(
    buffer: str, mask: str = "self.seen[:t, :t]", dtype: str = "bool", shape: str = "[512,512]"
) -> str | None:
    return edited(
        MASKED.format(buffer=buffer, mask=mask, dtype=dtype, shape=shape, heads=",".join([HEADS] * 3))
    )


@pytest.mark.parametrize(
    ("buffer", "mask"),
    [
        (LOWER, "self.seen[:t, :t]"),
        (LOWER, "attn_mask=(self.seen[:t, :t])"),
        (LOWER, "(\n            self.seen[:t, :t])"),
        ("torch.ones(n, n).tril()[None, None].bool()", "self.seen[:, :, :t, :t]"),
        ("torch.triu(torch.ones(n, n), diagonal=1).bool()", "~self.seen[:t, :t]"),
    ],
)
def test_a_causal_mask_becomes_a_flag(buffer: str, mask: str) -> None:
    assert masked(buffer, mask) == "(q, k, v, is_causal=True)"


def local(lines: str, given: str = "") -> str | None:
    """The edit where the buffer is a local name that ``lines`` make."""
    code = MASKED.replace("self, n)", f"self, n{given})").replace("{buffer}", "seen")
    code = code.replace("        self.register", f"        {lines}\n        self.register")
    return edited(
        code.format(mask="self.seen[:t, :t]", dtype="bool", shape="[512,512]", heads=",".join([HEADS] * 3))
    )


def test_a_name_is_what_it_was_assigned() -> None:
    assert local(f"seen = {LOWER}") == "(q, k, v, is_causal=True)"


@pytest.mark.parametrize(
    "lines",
    [
        f"seen = {LOWER}; seen &= window(n)",
        f"seen = {LOWER}; seen[:, 0] = False",
        f"seen = {LOWER}; seen.logical_and_(window(n))",
        f"seen, rest = window(n); seen = {LOWER} if rest else seen",
        f"seen = {LOWER}; seen, rest = window(seen)",
        f'seen = {LOWER}; self.register_buffer("seen", seen); seen[:, 0] = False',
    ],
)
def test_a_name_that_is_changed_later_is_not(lines: str) -> None:
    assert local(lines) is None


def test_nor_a_parameter_that_is_assigned_only_sometimes() -> None:
    assert local(f"if seen is None: seen = {LOWER}", given=", seen=None") is None


@pytest.mark.parametrize(
    "buffer",
    [
        f"{LOWER} & torch.triu(torch.ones(n, n), -9).bool()",
        "torch.ones(n, n).tril().triu(-9).bool()",
        "torch.tril(torch.ones(n, n), -1).bool()",
        f"~{LOWER}",
        f"{LOWER}[1:]",
    ],
)
def test_another_mask_stays(buffer: str) -> None:
    assert masked(buffer) is None


def test_a_mask_of_numbers_is_added_to_the_scores() -> None:
    assert masked("torch.tril(torch.ones(n, n))", dtype="float") is None


def test_one_row_for_all_is_no_triangle() -> None:
    assert masked(LOWER, shape="[1,512]") is None


def without_heads(arguments: str, *calls: str, parameters: str = "q, k, v, mask") -> str | None:
    recorded = "".join(CALL.format(shapes=each) for each in calls)
    return edited(FALLING_BACK.format(parameters=parameters, arguments=arguments) + recorded)


PLAIN = f"{BATCH},{BATCH},{BATCH}"


def test_a_dimension_for_heads() -> None:
    new = "(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1){}).squeeze(1)"
    assert without_heads("q, k, v", PLAIN) == new.format("")
    assert without_heads("q, k, v, mask", f"{PLAIN},[512,512]") == new.format(", mask")
    assert without_heads("q, k, v, mask", f"{PLAIN},[8,1,512]") == new.format(", mask.unsqueeze(1)")


def test_arguments_on_several_lines_get_brackets() -> None:
    code = without_heads("q\n        .half(), k, value := v", PLAIN)
    assert code == "((q\n        .half()).unsqueeze(1), k.unsqueeze(1), (value := v).unsqueeze(1)).squeeze(1)"


def test_no_dimension_for_a_mask_that_has_one_only_sometimes_or_may_be_none() -> None:
    own = f"{PLAIN},[8,512,512]"
    assert without_heads("q, k, v, mask", own, f"{PLAIN},[512,512]") is None
    assert without_heads("q, k, v, mask", own, parameters="q, k, v, mask=None") is None
    assert without_heads("q, k, v, self.mask", own) is None


def test_heads_that_are_grouped_are_not_expanded() -> None:
    grouped = f"{HEADS},[8,2,512,64],[8,2,512,64]"
    assert without_heads("q, k, v, enable_gqa=True", grouped) is None
    assert without_heads("q, k, v, enable_gqa=True", f"{BATCH},[2,512,64],[2,512,64]") is None


def test_inputs_are_expanded_to_the_one_that_is_always_the_largest() -> None:
    one, swapped = "[8,1,512,64]", "[8,1,512,64],[8,4,512,64],[8,4,512,64]"
    assert without_heads("q, k, v", f"{HEADS},{one},{one}") == (
        "(q, k.expand(-1, q.shape[1], -1, -1), v.expand(-1, q.shape[1], -1, -1))"
    )
    assert without_heads("q, k, v", f"{HEADS},{one},{one}", swapped) is None
    assert without_heads("q, k, v", f"{HEADS},[1,512,64],[1,512,64]") is None


WRITTEN_OUT = """\
#> steps step_ms=40
import torch
def attend(q, k, v):
    scores = q @ k.transpose(-2, -1) / 8
    #^ cost device_ms=9; op aten::matmul device_ms=9
    weights = torch.softmax(scores, dim=-1)
    #^ cost device_ms=9; op aten::softmax device_ms=9
    out = weights @ v
    #^ cost device_ms=9; op aten::matmul device_ms=9
    return {result}
"""


@pytest.mark.parametrize(("result", "fused"), [("out", True), ("out, weights", False)])
def test_weights_that_are_returned_stay(result: str, fused: bool) -> None:
    example = read_example(WRITTEN_OUT.format(result=result))
    (draft,) = (
        one
        for one in diagnose(example.profile, texts(example)).findings
        if one.rule == "hand-written-attention"
    )
    assert bool(draft.fixes) == fused
    assert ("uses the weights elsewhere" in draft.message) != fused


IN_FLOAT32 = """\
#> steps step_ms=40
import torch.nn.functional as F
def attend(q, k, v, mask):
    q = project(q)  #> cost device_ms=9; op aten::mm device_ms=9 dtypes={half},{half}
    return F.scaled_dot_product_attention({arguments})
    #^ cost device_ms=24; op aten::_scaled_dot_product_efficient_attention device_ms=24 dtypes={ran}
    #^ op aten::scaled_dot_product_attention shapes=[{shapes}] dtypes=float,float,float,{mask}
"""


def in_float32(
    arguments: str = "q, k, v", half: str = "c10::BFloat16", ran: str = "float", mask: str = ""
) -> str | None:
    shapes = ",".join([HEADS] * 3) + (",[512,512]" if mask else "")
    return edited(IN_FLOAT32.format(arguments=arguments, half=half, ran=ran, shapes=shapes, mask=mask or "_"))


def test_attention_in_float32_between_products_in_half() -> None:
    assert in_float32() == "(q.bfloat16(), k.bfloat16(), v.bfloat16()).float()"
    assert in_float32("query=q * c, key=k, value=v", "c10::Half") == (
        "(query=(q * c).half(), key=k.half(), value=v.half()).float()"
    )
    assert (
        in_float32("q, k, v, mask", mask="bool") == "(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask).float()"
    )


def test_attention_in_float32_that_stays() -> None:
    assert in_float32("q, k, v, mask", mask="float") is None  # has to be of the type of the query
    assert in_float32(half="float") is None
    assert in_float32(ran="c10::BFloat16") is None  # under autocast
    assert in_float32("q.bfloat16(), k, v") is None  # edited since


ON_HOST = FALLING_BACK.replace("#> steps", "#> device kind=cpu; steps").replace(
    "op aten::bmm", "{more}op aten::bmm"
)


@pytest.mark.parametrize(
    ("shapes", "more", "after"),
    [
        (",".join([BATCH] * 3), "", "(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)).squeeze(1)"),
        (
            f"{HEADS},[1,4,512,64],[1,4,512,64]",
            "",
            "(q, k.expand(q.shape[0], -1, -1, -1), v.expand(q.shape[0], -1, -1, -1))",
        ),
        (",".join([BATCH] * 3), "op aten::dropout; ", None),  # that kernel has none
        (",".join([HEADS] * 3), "", None),  # for a reason that nothing tells
    ],
)
def test_the_kernel_for_cpus_takes_what_those_for_gpus_take(
    shapes: str, more: str, after: str | None
) -> None:
    code = ON_HOST.format(parameters="q, k, v", arguments="q, k, v", more=more) + CALL.format(shapes=shapes)
    assert edited(code) == after


DROPPED = """\
import torch
import torch.nn.functional as F

def attend(q, k, v, rate):
    #> tensor %20 shape=[64,128,32]; tensor %21 shape=[64,32,128]; tensor %22 shape=[64,128,32]
    scores = q @ k.transpose(1, 2) / 32 ** 0.5
    #^ cost device_ms=4; op aten::bmm shapes=[[64,128,32],[64,32,128]] device_ms=2
    #^ node aten.bmm.default args=[%20,%21] shape=[64,128,128]
    #^ node aten.div.Tensor args=[%0,5.65] shape=[64,128,128]
    weights = scores.softmax(-1)
    #^ cost device_ms=3; op aten::_softmax shapes=[[64,128,128]] device_ms=3
    #^ node aten._softmax.default args=[%1,-1,False] shape=[64,128,128]
    weights = F.dropout(weights, rate)  #> cost device_ms=2{drawn}
    return weights @ v
    #^ cost device_ms=2; op aten::bmm shapes=[[64,128,128],[64,128,32]] device_ms=2
    #^ node aten.bmm.default args=[{given},%22] shape=[64,128,32]
"""
DRAWN = (
    "\n    #^ node aten.bernoulli_.float args=[%23,0.9] shape=[64,128,128]"
    "\n    #^ node aten.div_.Scalar args=[%3,0.9] shape=[64,128,128]"
    "\n    #^ node aten.mul.Tensor args=[%2,%4] shape=[64,128,128]; tensor %23 shape=[64,128,128]"
)


@pytest.mark.parametrize(("drawn", "given", "tried"), [("", "%2", ()), (DRAWN, "%5", ("dropout",))])
def test_dropout_with_a_rate_of_0_is_not_tried(drawn: str, given: str, tried: tuple[str, ...]) -> None:
    example = read_example(DROPPED.format(drawn=drawn, given=given))
    (draft,) = HandWrittenAttention().find(Context(example.profile, texts(example)))
    assert isinstance(draft.change, Replace)
    assert draft.change.options == tried
