"""A causal mask in compiled code: the graph calls a kernel, with a mask that has become one of numbers."""

from __future__ import annotations

import pytest

from tests.annotated import read_example, texts
from warpline.diagnosis.diagnose import diagnose

CODE = """\
#> steps step_ms=40
import torch
import torch.nn.functional as F
class Mixer(torch.nn.Module):
    def __init__(self, longest):
        super().__init__()
        past = {past}
        self.register_buffer("past", past, persistent=False)
    def forward(self, q, k, v):
        t = q.shape[-2]
        seen = {seen}
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        #^ cost device_ms=24; op aten::{kernel} device_ms=24 shapes=[{inputs}] dtypes={dtypes}
        #^ op aten::{kernel}_backward phase=backward shapes=[{inputs}] dtypes={dtypes}
"""
HEADS = ",".join(["[8,12,512,64]"] * 3)
CUDNN, EFFICIENT = "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention"
ON_CPU = "_scaled_dot_product_flash_attention_for_cpu"
LOWER = "torch.ones(longest, longest, dtype=torch.bool).tril()"
OWN = "self.past[:t, :t]"


def edits(past: str = LOWER, seen: str = OWN, kernel: str = CUDNN, shape: str = "[512,512]") -> list[str]:
    inputs = f"{HEADS},[],[],{shape}" if kernel == ON_CPU else f"{HEADS},{shape}"
    numbers = ["c10::BFloat16"] * 3
    dtypes = ",".join([*numbers, *(["double", "bool"] if kernel == ON_CPU else []), numbers[0]])
    code = CODE.format(past=past, seen=seen, kernel=kernel, inputs=inputs, dtypes=dtypes)
    example = read_example(code)
    found = diagnose(example.profile, texts(example)).findings
    return [
        edit.text
        for one in found
        if one.rule == "slow-attention-kernel"
        for fix in one.fixes
        for edit in fix.edits
    ]


@pytest.mark.parametrize("kernel", [CUDNN, EFFICIENT, ON_CPU])
def test_the_mask_becomes_a_flag_whatever_kernel_the_graph_calls(kernel: str) -> None:
    assert edits(kernel=kernel) == ["is_causal=True"]


@pytest.mark.parametrize(
    ("past", "seen"),
    [
        ("torch.tril(torch.ones(longest, longest)).to(torch.bool)", OWN),
        ("torch.tril(torch.ones(longest, longest, dtype=torch.bool))[None, None]", "self.past[:, :, :t, :t]"),
        ("torch.triu(torch.ones(longest, longest, dtype=bool), diagonal=1)", "~self.past[:t, :t]"),
        ("None", "torch.ones(t, t, dtype=torch.bool, device=q.device).tril()"),
        ("None", "torch.triu(torch.full((t, t), float('-inf'), device=q.device), diagonal=1)"),
    ],
)
def test_however_the_mask_is_made(past: str, seen: str) -> None:
    assert edits(past, seen) == ["is_causal=True"]


@pytest.mark.parametrize(
    ("past", "seen"),
    [
        # Of numbers: they are added to the scores, and hide nothing.
        ("torch.ones(longest, longest).tril()", OWN),
        (LOWER, "self.past[:t, :t].float()"),
        ("torch.tril(torch.ones(longest, longest, dtype=torch.float32))", OWN),
        # Of a type that the text does not say.
        ("torch.ones(longest, longest, dtype=kind()).tril()", OWN),
        (LOWER, "convert(self.past[:t, :t])"),
        # Another mask.
        ("torch.ones(longest, longest, dtype=torch.bool).tril(-1)", OWN),
        ("torch.ones(longest, longest, dtype=torch.bool).tril().triu(-64)", OWN),
        (LOWER, "self.past[:t, :t] & ~padding"),
        (LOWER, "~self.past[:t, :t]"),
    ],
)
def test_another_mask_stays(past: str, seen: str) -> None:
    assert edits(past, seen) == []


def test_a_kernel_without_a_mask_computes_nothing_hidden() -> None:
    assert edits(kernel="_scaled_dot_product_flash_attention", shape="[]") == []


def test_nor_a_part_of_the_keys() -> None:
    assert edits(shape="[512,400]") == []
