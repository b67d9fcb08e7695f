"""float64 in kernels that torch.compile made, which show no operator."""

from __future__ import annotations

from dataclasses import replace

from tests.annotated import FILE, read_example, texts
from warpline.rulekit import Context, Draft
from warpline.rules import rule_named
from warpline.wire.run import CompiledKernel

SCRIPT = """\
import numpy as np
import torch

speed = np.linspace(1, 2, 4096)
speed = torch.from_numpy(np.where(speed > 1.5, 3.0, speed)).cuda()
kind = torch.from_numpy(np.where(speed > 1.5, 3, 4)).cuda()


@torch.compile
def advance(now):
    return now * speed
    #^ cost device_ms=9; kernel triton_poi_fused_mul_0 count=1 device_ms=9
"""


def drafts(double: bool) -> list[Draft]:
    example = read_example(SCRIPT)
    kernel = CompiledKernel("triton_poi_fused_mul_0", ((FILE, 11, "advance"),), double=double)
    facts = replace(example.profile.facts, compiled_kernels=(kernel,))
    rule = rule_named("float64-on-device")
    assert rule is not None
    return list(rule.find(Context(replace(example.profile, facts=facts), texts(example))))


def test_the_kernel_counts_if_it_is_in_float64() -> None:
    (draft,) = drafts(double=True)
    assert (draft.line, draft.cause.line) == (5, 11)
    assert drafts(double=False) == []


def test_only_the_array_of_float64_is_cast() -> None:
    """``where`` has the type of its values: the condition says nothing of it."""
    (draft,) = drafts(double=True)
    (fix,) = draft.fixes
    assert [edit.start[0] for edit in fix.edits] == [5]
