"""Formulas of operations, against torch's own counter of the same operators."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from warpline.attribution.flops import bytes_of, flops_of
from warpline.trace.columns import Signature


def counted(work: object) -> float:
    with FlopCounterMode(display=False) as counter:
        work()  # type: ignore[operator]
    return float(counter.get_total_flops())


def ours(name: str, *shapes: tuple[int, ...], values: tuple[str, ...] = ()) -> float:
    found = flops_of(name, Signature(shapes, ("float",) * len(shapes), (), values))
    assert found is not None
    return found


def test_matrix_products() -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    assert ours("aten::mm", (5, 7), (7, 3)) == counted(lambda: a @ b)
    bias = torch.randn(3)
    assert ours("aten::addmm", (3,), (5, 7), (7, 3)) == counted(lambda: torch.addmm(bias, a, b))
    batch = torch.randn(4, 5, 7), torch.randn(4, 7, 3)
    assert ours("aten::bmm", (4, 5, 7), (4, 7, 3)) == counted(lambda: torch.bmm(*batch))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("stride", "padding", "groups"), [(1, 1, 1), (2, 0, 1), (1, 1, 4)])
def test_convolutions_and_their_gradients(first: bool, stride: int, padding: int, groups: int) -> None:
    """``first``: of a first layer, whose input needs no gradient."""
    x = torch.randn(2, 8, 12, 12, requires_grad=not first)
    weight = torch.randn(16, 8 // groups, 3, 3, requires_grad=True)

    def convolve() -> torch.Tensor:
        return torch.nn.functional.conv2d(x, weight, stride=stride, padding=padding, groups=groups)

    out = convolve().detach()
    pairs = f"[{stride}, {stride}]", f"[{padding}, {padding}]", "[1, 1]", "False", "[0, 0]", str(groups)
    forward = ours("aten::convolution", x.shape, weight.shape, values=("", "", "", *pairs))
    mask = f"[{not first}, True, False]"
    backward = ours(
        "aten::convolution_backward", out.shape, x.shape, weight.shape, values=("",) * 4 + pairs + (mask,)
    )
    assert forward == counted(convolve)
    if groups > 1:  # torch counts the weight's gradient as if every channel met every other
        assert backward == forward * (1 if first else 2)
        return
    assert forward + backward == counted(lambda: convolve().sum().backward())


@pytest.mark.parametrize(
    ("name", "query", "causal_at", "products"),
    [
        ("aten::_scaled_dot_product_cudnn_attention", 0, 6, 2),
        ("aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, 5),
        ("aten::_scaled_dot_product_flash_attention", 0, 4, 2),
        ("aten::_scaled_dot_product_efficient_attention_backward", 1, 11, 5),
    ],
)
def test_a_causal_mask_leaves_about_half_of_attention(
    name: str, query: int, causal_at: int, products: int
) -> None:
    """Counted whole, an H200 did 1021 TFLOP/s in bfloat16, of 989 that it can."""
    shape = (2, 3, 64, 16)
    values = ["", *[""] * causal_at]
    values[causal_at] = "False"
    whole = ours(name, *[shape] * (query + 3), values=tuple(values))
    assert whole == products * 2 * (2 * 3 * 64 * 64 * 16)
    values[causal_at] = "True"
    assert ours(name, *[shape] * (query + 3), values=tuple(values)) == whole * 65 / 128


def moved(name: str, *tensors: tuple[tuple[int, ...], str]) -> float | None:
    return bytes_of(
        name, Signature(tuple(shape for shape, _ in tensors), tuple(dtype for _, dtype in tensors))
    )


def test_what_only_touches_part_of_its_input() -> None:
    """By what a cross entropy of 30522 classes and an embedding of as many words move."""
    table, words = ((30522, 768), "float"), ((32, 128), "long int")
    assert moved("aten::embedding", table, words) == 32 * 128 * (2 * 768 * 4 + 8)
    scores, targets = ((4096, 30522), "float"), ((4096,), "long int")
    assert moved("aten::nll_loss_forward", scores, targets) == 4096 * (4 + 8)
    assert moved("aten::nll_loss_backward", ((), "float"), scores, targets) == 4096 * (4 + 8)
    assert moved("aten::zero_", scores) == 4096 * 30522 * 4
    assert moved("aten::embedding", table) is None


def test_what_is_malformed_has_none() -> None:
    assert flops_of("aten::mm", Signature(((5, 7), (6, 3)), ("float", "float"), (), ())) is None
    assert flops_of("aten::convolution", Signature(((2,),), ("float",), (), ())) is None
    assert flops_of("aten::relu", Signature(((2,),), ("float",), (), ())) is None
