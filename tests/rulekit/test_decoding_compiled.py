"""Attention in compiled code is not seen, and neither is its mask."""

from __future__ import annotations

import pytest

from warpline.rulekit.decoding import _is_causal
from warpline.rulekit.graph import graph_of
from warpline.wire.dataflow import COMPILED, Dataflow


@pytest.mark.parametrize("model", ["aten.relu.default", COMPILED])
def test_a_softmax_over_words_is_no_attention_of_a_compiled_model(model: str) -> None:
    flow = Dataflow(
        missing="code is compiled" if model == COMPILED else "",
        around=model == COMPILED,
        names=(model, "aten._softmax.default"),
        shapes=((4, 9000),),
        dtypes=("float32",),
        name=(0, 1),
        site=(-1, -1),
        arguments=(["%0"], ["%1", -1, False]),
        outputs=((1,), (2,)),
        shape=(0, 0, 0),
        dtype=(0, 0, 0),
    )
    assert _is_causal(graph_of(flow)) is (model == COMPILED)
