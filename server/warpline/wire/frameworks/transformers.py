"""transformers: ``TrainingArguments`` of its Trainer, and ``generate``."""

from __future__ import annotations

from . import Construction, Setting

CONSTRUCTIONS = (
    Construction(
        "transformers.training_args",
        "TrainingArguments",
        (),
        (
            Setting("fp32-matmul", {"bf16": "True"}, "Train in bfloat16", needs="bf16", unless=("fp16",)),
            Setting("fp32-matmul", {"fp16": "True"}, "Train in float16", needs="fp16", unless=("bf16",)),
            Setting("fp32-matmul", {"tf32": "True"}, "Allow TF32 for float32 matrix products"),
            Setting(
                "loader-without-workers",
                {"dataloader_num_workers": "{workers}", "dataloader_persistent_workers": "True"},
                "Use {workers} worker processes",
                where_known=("dataloader_persistent_workers",),
            ),
            Setting(
                "too-few-loader-workers",
                {"dataloader_num_workers": "{workers}"},
                "Use {workers} worker processes",
            ),
            Setting(
                "loader-workers-restart",
                {"dataloader_persistent_workers": "True"},
                "Keep the loader's workers",
            ),
            Setting("pageable-host-copy", {"dataloader_pin_memory": "True"}, "Pin the loader's batches"),
            Setting("launch-bound", {"torch_compile": "True"}, "Compile the model"),
            Setting("unfused-elementwise", {"torch_compile": "True"}, "Compile the model"),
            Setting("per-tensor-optimizer", {"optim": '"adamw_torch_fused"'}, "Use the fused AdamW"),
            Setting(
                "memory-headroom", {"gradient_checkpointing": "True"}, "Recompute activations in backward"
            ),
            Setting(
                "framework-wait",
                {"logging_nan_inf_filter": "False"},
                "Do not look for NaN in the loss of each step",
                text="isnan",
            ),
        ),
        method="__post_init__",
        called=("TrainingArguments", "Seq2SeqTrainingArguments", "SFTConfig", "DPOConfig", "GRPOConfig"),
    ),
    Construction(
        "transformers.generation.utils",
        "GenerationMixin",
        ("transformers",),
        (
            Setting(
                "launch-bound",
                {"cache_implementation": '"static"'},
                "Keep the cache at one size, so that decoding is compiled and replayed as a graph",
                unless=("past_key_values",),
            ),
        ),
        method="generate",
        fields=("transformers.generation.configuration_utils", "GenerationConfig"),
        called=("generate",),
    ),
)
