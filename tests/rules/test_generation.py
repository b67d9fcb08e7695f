"""Whole sequences are generated in a step: more shapes than are kept of a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.annotated import read_example, texts
from tests.rulekit.graph.recording import recorded
from warpline.diagnosis import diagnose
from warpline.model.profile import MOST_OPS_A_LINE
from warpline.rulekit import Context
from warpline.rulekit.decoding import growing

torch = pytest.importorskip("torch")

CODE = """\
#> steps step_ms=40
for batch in batches:
    for end in range(96, 144):
        scores = model(batch[:, :end])
        #^ cost step_ms=30 device_ms=30{kept}
"""
ATTENTION = "op aten::scaled_dot_product_attention shapes=[[8,8,{0},64],[8,8,{0},64]] count=1"
LAYER = "op aten::addmm shapes=[[64],[{0},64],[64,64]] count=1 device_ms=0.2"


def spent(kept: Sequence[str], recorded_lengths: Sequence[int], begins: tuple[int, ...] = ()) -> float | None:
    """What the finding says that the growing sequence takes; None without one. ``begins``: steps in which
    `generate` is called."""
    lines = "".join(f"\n        #^ {one}" for one in kept)
    example = read_example(CODE.format(kept=lines))

    def generate() -> None:
        for length in recorded_lengths:
            x = torch.zeros(1, 1, length, 4)
            for _ in range(2):  # layers
                x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    facts = replace(example.profile.facts, dataflow=recorded(generate).flow, prefill_steps=begins)
    found = diagnose(replace(example.profile, facts=facts), texts(example)).findings
    return next((one.evidence[2].value for one in found if one.rule == "generation-without-cache"), None)


#: The costliest, a few of each operator, as they come.
KEPT = [ATTENTION.format(one) for one in (98, 101, 117, 143)]
KEPT += [LAYER.format(8 * at) for at in range(MOST_OPS_A_LINE - len(KEPT))]


def test_lengths_that_were_not_kept_are_read_off_the_recorded_step() -> None:
    assert len(KEPT) == MOST_OPS_A_LINE
    assert spent(KEPT, range(96, 144)) == pytest.approx(30)
    assert spent(KEPT, [*range(96, 120), *range(96, 144)]) == pytest.approx(30)  # it begins again


@pytest.mark.parametrize("lengths", [[98, 117, 101, 143], [96, 97, 99, 100], [96] * 9, [96, 97]])
def test_batches_of_other_lengths_generate_nothing(lengths: list[int]) -> None:
    assert spent(KEPT, lengths) is None


def test_of_a_line_whose_operators_are_all_kept_each_length_is() -> None:
    lengths = [ATTENTION.format(one) for one in (96, 97, 98, 99)]
    layers = [LAYER.format(one) for one in (96, 97, 98)]  # of the four lengths
    assert spent([*lengths, *layers], range(96, 100)) is None
    assert spent([*lengths, *layers, LAYER.format(99)], range(96, 100)) == pytest.approx(0.8)


def test_captured_steps_may_be_of_two_calls() -> None:
    kept = [ATTENTION.format(one) for one in (40, 57, 58, 59)]
    kept += [LAYER.format(one) for one in (40, 57, 58, 59)]
    assert spent(kept, [59], (3, 23)) == pytest.approx(0.8)
    assert spent(kept, [59]) is None  # no call is known to begin: batches of other lengths
    apart = [one.replace("57", "50") for one in kept]
    assert spent(apart, [59], (3, 23)) is None


def masked(heads: int, rows: int, shape: tuple[int, ...]) -> bool:
    """Whether attention that is written out grows, with a mask of ``shape`` (0: the length) added."""
    lengths = range(96, 144)
    kept = [f"op aten::_softmax shapes=[[{rows},{heads},{one},{one}]] count=1" for one in (98, 101, 117, 143)]
    example = read_example(CODE.format(kept="".join(f"\n        #^ {one}" for one in kept)))

    def generate() -> None:
        for length in lengths:
            scores = torch.zeros(rows, heads, length, length)
            torch.softmax(scores + torch.zeros([one or length for one in shape]), -1)

    facts = replace(example.profile.facts, dataflow=recorded(generate).flow)
    return growing(Context(replace(example.profile, facts=facts), texts(example))) is not None


@pytest.mark.parametrize("shape", [(0, 0), (1, 1, 0, 0), (2, 1, 0, 0)])
def test_a_mask_may_be_each_rows_own(shape: tuple[int, ...]) -> None:
    assert masked(3, 2, shape)


@pytest.mark.parametrize("shape", [(2, 3, 0, 0), (3, 1, 1), (2, 1, 1, 0)])
def test_biases_of_heads_and_masks_of_padding_hide_no_future(shape: tuple[int, ...]) -> None:
    assert not masked(3, 2, shape)
