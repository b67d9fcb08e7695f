"""Which operators may round float32 inputs to TF32."""

from __future__ import annotations

from warpline.model.dtypes import tf32_allowed
from warpline.wire.facts import Flags


def test_attention_makes_float32_of_three_products_in_tf32() -> None:
    flags = Flags(allow_tf32=True, float32_matmul_precision="high")
    assert tf32_allowed("aten::mm", flags)
    assert not tf32_allowed("aten::_efficient_attention_forward", flags)
