"""Operators that several stages know by their names."""

from __future__ import annotations

#: The fused kernels of attention. Compiled code calls the one that was chosen when it was compiled; elsewhere
#: ``aten::scaled_dot_product_attention`` chooses one.
FUSED_ATTENTION = frozenset(
    f"aten::_scaled_dot_product_{kind}"
    for kind in (
        "flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
        "fused_attention_overrideable",
    )
)  # fmt: skip
