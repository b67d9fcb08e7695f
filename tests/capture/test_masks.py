"""Whether a mask of attention is a causal one, by what it holds."""

from __future__ import annotations

import pytest

from warpline.capture.runner.dataflow.masks import Masks

torch = pytest.importorskip("torch")

SIZE = 16
KEPT = torch.ones(SIZE, SIZE, dtype=torch.bool).tril_()
ROWS = torch.arange(SIZE)
BIAS = torch.zeros(2, 4, SIZE, SIZE).masked_fill_(~KEPT, float("-inf"))
CAUSAL = {
    "a triangle made in place": KEPT,
    "rows and columns compared": ROWS[:, None] >= ROWS,
    "one for all heads": KEPT.expand(2, 4, SIZE, SIZE),
    "numbers for each head": BIAS,
    "a triangle of the smallest numbers": torch.full((SIZE, SIZE), torch.finfo(torch.half).min).triu_(1),
    "what torch makes of flags on a device": torch.zeros(SIZE, SIZE).where(KEPT, float("-inf")),
}
OTHERS = {
    "the next one is seen too": torch.ones(SIZE, SIZE, dtype=torch.bool).tril(1),
    "a window": KEPT & (ROWS[:, None] - ROWS < 4),
    "flags the other way round": ~KEPT,
    "ones that are added": KEPT.float(),
    "distances as well": BIAS - (ROWS[:, None] - ROWS).abs(),
    "padding as well": KEPT.expand(2, 1, SIZE, SIZE) & (torch.tensor([16, 9])[:, None] > ROWS)[:, None, None],
    "other keys": torch.ones(SIZE, 2 * SIZE, dtype=torch.bool).tril(),
    "none is hidden": torch.zeros(SIZE, SIZE),
}


def causal(mask: object) -> bool:
    masks = Masks(torch)
    aten = torch.ops.aten
    masks.add(aten._scaled_dot_product_flash_attention_for_cpu.default, (0, 1, 2), {"attn_mask": mask}, 7)
    masks.add(aten._scaled_dot_product_efficient_attention.default, (0, 1, 2, mask, True), {}, 8)
    masks.add(aten._scaled_dot_product_efficient_attention.default, (0, 1, 2, None, True), {}, 9)
    first, second = masks.masked()
    assert (first.operator, second.operator) == (7, 8)
    assert first.causal == second.causal
    return first.causal


@pytest.mark.parametrize("name", CAUSAL)
def test_it_hides_what_comes_later(name: str) -> None:
    assert causal(CAUSAL[name])


@pytest.mark.parametrize("name", OTHERS)
def test_it_hides_something_else(name: str) -> None:
    assert not causal(OTHERS[name])
