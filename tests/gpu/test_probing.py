"""Replacements tried on a GPU: every kind agrees with what it replaces, and its times make sense."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.capture.test_probing import ANYWHERE, COMPILES, attending
from warpline.capture import probing
from warpline.wire.probing import Answer, Question, Tensor
from warpline.wire.run import Request

LARGE = (Tensor((4096, 4096)), Tensor((4096, 4096)))
WIDE = (Tensor((64, 512, 1024)),)
TINY = (Tensor((4, 8)),)
GRAPHED = replace(COMPILES, options=(*COMPILES.options, "reduce-overhead"))


@pytest.fixture(scope="module")
def tried() -> dict[Question, Answer]:
    asked = (
        *ANYWHERE,
        Question("product", LARGE, ("bf16",)),
        Question("product", LARGE, ("tf32",)),
        Question("gelu", WIDE, backward=True),
        Question("gelu", TINY),
        COMPILES,
        GRAPHED,
        *map(attending, ("flash", "cudnn")),
    )
    found = probing.probe(Request(python=sys.executable), asked, 60.0, device="cuda", threads=None)
    assert not found.left, found
    return {one.question: one for one in found.answers}


def test_every_kind_agrees_on_the_device(tried: dict[Question, Answer]) -> None:
    for one in tried.values():
        assert not one.error, one
        assert one.difference <= 1, one


def test_large_products_are_the_device_s_and_small_activations_the_host_s(
    tried: dict[Question, Answer],
) -> None:
    for precision, least in (("bf16", 3.0), ("tf32", 2.0)):
        one = tried[Question("product", LARGE, (precision,))]
        assert one.before is not None
        assert one.after is not None
        assert one.before.device_ns > least * one.after.device_ns
        # 2 n^3 operations: between what float32 units and what tensor cores can do.
        assert 10e12 < 2 * 4096**3 / (one.before.device_ns * 1e-9) < 80e12
    wide, tiny = tried[Question("gelu", WIDE, backward=True)], tried[Question("gelu", TINY)]
    assert wide.before is not None
    assert wide.after is not None
    assert wide.before.device_ns > 2 * wide.after.device_ns
    assert wide.before.device_ns > wide.before.host_ns
    assert tiny.before is not None
    assert tiny.after is not None
    assert tiny.before.host_ns > 2 * tiny.after.host_ns


def test_compiled_code_is_tried_with_cuda_graphs_as_well(tried: dict[Question, Answer]) -> None:
    plain, graphed = tried[COMPILES], tried[GRAPHED]
    assert plain.after is not None
    assert graphed.after is not None
    assert graphed.after.host_ns < plain.after.host_ns
