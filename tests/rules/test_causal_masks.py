"""A mask that hides the future, told by what it held in the recorded step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.annotated import FILE, read_example, texts
from warpline.diagnosis.diagnose import diagnose
from warpline.model.report import Finding
from warpline.wire.dataflow import DIRECT, MODULE, Dataflow, Masked, OperatorSite

CALL = 5
CODE = """\
#> steps step_ms=40
import torch.nn.functional as F

def attend(q, k, v, book):
    seen = book.visible(q)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    #^ cost device_ms=24; op aten::_scaled_dot_product_cudnn_attention device_ms=24
    #^ op aten::scaled_dot_product_attention shapes=[[8,8,9,64],[8,8,9,64],[8,8,9,64],[9,9]] dtypes=c10::Half

attend(*inputs).sum().backward()  #> cost device_ms=1
"""


def found(*causal: bool, shape: str = "[9,9]", call: str = "", via: str = DIRECT) -> list[Finding]:
    code = CODE.replace("F.scaled_dot_product_attention(q, k, v, attn_mask=seen)", call) if call else CODE
    example = read_example(code.replace("[9,9]", shape))
    flow = Dataflow(
        missing="",
        names=("aten._scaled_dot_product_cudnn_attention.default",),
        sites=(OperatorSite(FILE, CALL, "attend", via),),
        name=(0,) * len(causal),
        site=(0,) * len(causal),
        masked=tuple(Masked(at, one) for at, one in enumerate(causal)),
    )
    facts = replace(example.profile.facts, dataflow=flow)
    return list(diagnose(replace(example.profile, facts=facts), texts(example)).findings)


def test_the_call_is_told_to_use_is_causal() -> None:
    (finding,) = found(True, True)
    assert (finding.rule, finding.line) == ("slow-attention-kernel", CALL)
    (fix,) = finding.fixes
    assert [one.text for one in fix.edits] == ["is_causal=True"]


def test_masks_of_each_sample_may_hide_padding_in_another_batch() -> None:
    (finding,) = found(True, True, shape="[8,1,9,9]")
    assert not finding.fixes
    assert "in another batch it may hide padding too" in finding.message


def test_not_where_one_layer_hides_something_else() -> None:
    assert not found(True, False)


def test_nor_where_the_step_was_not_recorded() -> None:
    assert not found()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("heads(q, k, v, attn_mask=seen, need_weights=False)[0]", ", is_causal=seen is not None"),
        ("layer(q, src_mask=book.seen[:9, :9])", ", is_causal=True"),
        ("layer(q, src_mask=book.visible(q))", None),
        ("layer(q, src_mask=seen, src_key_padding_mask=padded)", None),
        ("heads(q, k, v, attn_mask=seen, is_causal=early)[0]", None),
        ("heads(q, k, v, attn_mask=seen, **more)[0]", None),
    ],
)
def test_a_module_of_torch_is_told_and_keeps_its_mask(call: str, told: str | None) -> None:
    (finding,) = found(True, call=call, via=MODULE)
    assert [one.text for fix in finding.fixes for one in fix.edits] == ([told] if told else [])


def test_nor_is_one_that_gets_a_mask_for_each_sample() -> None:
    (finding,) = found(True, shape="[8,1,9,9]", call="layer(q, src_mask=seen)", via=MODULE)
    assert not finding.fixes


def test_a_module_of_the_scripts_own_is_not_told() -> None:
    (finding,) = found(True, call="heads(q, k, v, attn_mask=seen)")
    assert not finding.fixes
