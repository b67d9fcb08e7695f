"""Copies that nothing needs, and those that something does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.rulekit.graph.recording import recorded
from warpline.rulekit.graph.copies import (
    AGAIN,
    ANY_LAYOUT,
    CAST_BACK,
    FREED,
    REDUCED,
    THERE_AND_BACK,
    needless,
)

X = torch.randn(2, 6, 5, 4)
ROWS = torch.randn(3, 5, 8)
LINEAR, NORM = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
CONV = torch.nn.Conv2d(6, 6, 3, padding=1)
HALF = torch.randn(4, 8).bfloat16()


def turned_before_a_sum() -> Any:
    y = F.layer_norm(X.permute(0, 2, 3, 1), (6,))
    return X + y.permute(0, 3, 1, 2).contiguous()


def turned_before_a_convolution() -> Any:
    return CONV(F.linear(X.movedim(1, -1), torch.eye(6)).permute(0, 3, 1, 2).contiguous())


def turned_before_a_cast_convolution() -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return CONV(F.layer_norm(X.permute(0, 2, 3, 1), (6,)).permute(0, 3, 1, 2).contiguous())


def heads_before_attention() -> Any:
    q = X.transpose(1, 2).contiguous()
    return F.scaled_dot_product_attention(q, q, q)


def gated_images() -> Any:
    """Nothing turns the images here: they are channels last from the start."""
    x = CONV(X.contiguous(memory_format=torch.channels_last))
    return CONV((x * x.mean((2, 3), keepdim=True).sigmoid()).contiguous())


def normed_volume() -> Any:
    y = torch.randn(2, 4, 3, 6, 5).to(memory_format=torch.channels_last_3d) * 2
    return F.conv3d(F.relu(y).contiguous(), torch.randn(4, 4, 1, 1, 1))


def turned_before_a_product() -> Any:
    return ROWS.transpose(1, 2).contiguous() @ ROWS


def turned_before_a_cat() -> Any:
    turned = ROWS.transpose(1, 2).contiguous()
    return torch.cat([turned, turned], -1)


def images_turned_by_to() -> Any:
    return (
        torch.relu(X * 2)
        .to(memory_format=torch.channels_last)
        .to(memory_format=torch.contiguous_format)
        .relu()
    )


def turned_sum() -> Any:
    y = F.gelu(ROWS.transpose(1, 2) * 2)
    return y.contiguous() + 1


def gate_by_a_view() -> Any:
    x = torch.relu(CONV(X.contiguous(memory_format=torch.channels_last)))
    flat = x.contiguous()
    return CONV(flat * flat.view(2, 6, -1).mean(-1).sigmoid()[..., None, None])


def spread_of_flattened_images() -> Any:
    """`flatten` copies what is channels last."""
    x = torch.relu(CONV(X.contiguous(memory_format=torch.channels_last)))
    flat = x.flatten(1)
    return flat.amin(1) + flat.var(-1)


def whole_means() -> Any:
    x = torch.relu(CONV(X.contiguous(memory_format=torch.channels_last))).contiguous()
    return x.view(2, -1).mean() + x.view(2, -1).sum((0, 1))


def time_first_and_back() -> Any:
    y = ROWS.transpose(0, 1).contiguous()
    y = LINEAR(torch.relu(LINEAR(NORM(y))))
    return LINEAR(y.transpose(0, 1).contiguous())


def images_turned_for_a_convolution() -> Any:
    y = CONV(F.layer_norm(X.movedim(1, -1), (6,)).permute(0, 3, 1, 2).contiguous())
    return F.layer_norm(torch.moveaxis(torch.relu(y), 1, -1).contiguous(), (6,))


@torch.inference_mode()
def images_turned_in_inference_mode() -> Any:
    y = CONV(torch.movedim(F.layer_norm(X.movedim(1, -1), (6,)), -1, 1).contiguous())
    return F.layer_norm(y.movedim((1, 2), (-1, 1)).contiguous(), (6,))


def the_same_twice() -> Any:
    return ROWS.transpose(1, 2).contiguous().view(-1).prod() + ROWS.transpose(1, 2).contiguous().view(
        -1
    ).cumsum(0)


def weight_cast_for_each_part() -> Any:
    return sum(part @ LINEAR.weight.to(torch.bfloat16) for part in HALF.split(2))


def wide_and_narrow() -> Any:
    y = HALF.float()
    return y.view(8, 4).to(torch.bfloat16) * 2


def wide_before_a_product() -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return LINEAR(F.gelu(HALF).float())


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (turned_before_a_sum, ANY_LAYOUT),
        (turned_before_a_convolution, ANY_LAYOUT),
        (turned_before_a_cast_convolution, ANY_LAYOUT),
        (heads_before_attention, ANY_LAYOUT),
        (gated_images, ANY_LAYOUT),
        (normed_volume, ANY_LAYOUT),
        (turned_before_a_product, ANY_LAYOUT),
        (turned_before_a_cat, ANY_LAYOUT),
        (images_turned_by_to, ANY_LAYOUT),
        (turned_sum, ANY_LAYOUT),
        (gate_by_a_view, REDUCED),
        (spread_of_flattened_images, REDUCED),
        (whole_means, REDUCED),
        (time_first_and_back, THERE_AND_BACK),
        (the_same_twice, AGAIN),
        (weight_cast_for_each_part, AGAIN),
        (wide_and_narrow, CAST_BACK),
        (wide_before_a_product, CAST_BACK),
    ],
)
def test_needless(act: Callable[[], Any], why: str) -> None:
    assert {copies.why for copies in needless(recorded(act))} == {why}


def halves_turned_for_a_convolution() -> Any:
    y = F.layer_norm(X.movedim(1, -1), (6,)).permute(0, 3, 1, 2).contiguous()
    gate, images = y.chunk(2, 1)
    y = gate[:, :1] * F.conv2d(images, torch.randn(3, 3, 1, 1))
    return F.layer_norm(y.permute(0, 2, 3, 1).contiguous(), (3,))


@pytest.mark.parametrize(
    "act",
    [
        images_turned_for_a_convolution,
        images_turned_in_inference_mode,
        halves_turned_for_a_convolution,
    ],
)
def test_images_that_a_convolution_would_take_as_they_were(act: Callable[[], Any]) -> None:
    assert [copies.why for copies in needless(recorded(act))] == [ANY_LAYOUT, FREED]


def heads_joined() -> Any:
    return LINEAR(torch.randn(2, 2, 5, 4).transpose(1, 2).contiguous().view(2, 5, 8))


def _images() -> Any:
    return torch.relu(CONV(X.contiguous(memory_format=torch.channels_last))).contiguous()


def mean_of_channels() -> Any:
    return _images().view(2, 6, -1).mean(1)


def softmax_over_places() -> Any:
    return _images().view(2, 6, -1).softmax(-1)


def place_of_the_largest() -> Any:
    return _images().view(2, 6, -1).max(-1)


def flattened_for_a_layer() -> Any:
    flat = _images().view(2, -1)
    return flat @ torch.randn(120, 3) + flat.mean(-1, keepdim=True)


def halves_of_the_channels() -> Any:
    return _images().view(2, 2, 3, 20).mean((1, 3))


def made_channels_last() -> Any:
    return CONV(CONV(X).contiguous(memory_format=torch.channels_last))


def nothing_to_copy() -> Any:
    return CONV((X * 2).contiguous())


def every_second_column() -> Any:
    return CONV((X * 2)[:, :, :, ::2].contiguous())


def parts_that_are_written() -> Any:
    y = torch.relu(X).permute(0, 2, 3, 1).contiguous()
    y[..., :2].mul_(3)
    return y.sum()


def parts_that_are_viewed() -> Any:
    q, k = torch.relu(X).permute(0, 2, 3, 1).contiguous().split(2, 1)[:2]
    return q.view(2, -1).cumsum(0) * k.exp().sum()


def windows() -> Any:
    y = X.view(2, 3, 2, 5, 4).permute(0, 1, 3, 2, 4).contiguous().view(-1, 8)
    return LINEAR(y).view(2, 3, 5, 2, 4).permute(0, 1, 3, 2, 4).contiguous().view(2, 6, 5, 4)


def norm_in_float32() -> Any:
    return F.rms_norm(HALF.float(), (8,)).to(torch.bfloat16)


def rounded() -> Any:
    return ROWS.int().float() * 2 + ROWS.bfloat16().float()


def stepped_between() -> Any:
    weight = LINEAR.weight.detach().clone()
    first = HALF @ weight.to(torch.bfloat16)
    torch._foreach_mul_([weight], 0.5)
    return first + HALF @ weight.to(torch.bfloat16)


def own_copy() -> Any:
    y = ROWS.transpose(1, 2).clone()
    return y.add_(1)


def under_autocast() -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return LINEAR(ROWS) + LINEAR(ROWS)


def other_tensors() -> Any:
    return [part.transpose(0, 1).contiguous().view(-1) for part in ROWS]


@pytest.mark.parametrize(
    "act",
    [
        heads_joined,
        mean_of_channels,
        softmax_over_places,
        place_of_the_largest,
        flattened_for_a_layer,
        halves_of_the_channels,
        made_channels_last,
        nothing_to_copy,
        every_second_column,
        parts_that_are_written,
        parts_that_are_viewed,
        windows,
        norm_in_float32,
        rounded,
        stepped_between,
        own_copy,
        under_autocast,
        other_tensors,
    ],
)
def test_needed(act: Callable[[], Any]) -> None:
    assert list(needless(recorded(act))) == []


def test_a_view_that_leads_back_to_a_tensor_does_not_make_it() -> None:
    def there_and_back() -> Any:
        return torch.einsum("btd,bsd->bts", ROWS, ROWS) + ROWS.permute(0, 2, 1).permute(0, 2, 1).sum()

    graph = recorded(there_and_back)
    first = next(value for node in graph.nodes for value in node.inputs)
    assert graph.origin(first) == first
