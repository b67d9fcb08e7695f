"""accelerate: the Accelerator of a loop that the user writes."""

from __future__ import annotations

from . import Construction, Setting

CONSTRUCTIONS = (
    Construction(
        "accelerate.accelerator",
        "Accelerator",
        (),
        (
            Setting(
                "fp32-matmul",
                {"mixed_precision": '"bf16"'},
                "Train in bfloat16",
                needs="bf16",
                unless=("mixed_precision",),
                first=True,
            ),
            Setting(
                "fp32-matmul",
                {"mixed_precision": '"fp16"'},
                "Train in float16",
                needs="fp16",
                unless=("mixed_precision",),
                first=True,
            ),
        ),
        accumulates="gradient_accumulation_steps",
    ),
)
