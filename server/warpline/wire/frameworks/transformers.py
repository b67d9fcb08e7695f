"""transformers: ``TrainingArguments`` of its Trainer, models from checkpoints, ``pipeline``, ``generate``."""

from __future__ import annotations

from dataclasses import replace

from . import Construction, Setting

MODELS = (
    r"transformers\.(models\..+\.)?\w+(Model|For\w+|Head|HeadModel|Encoder)(\.(from_pretrained|_from_config))?",
    r"transformers\.AutoModel\w*\.(from_pretrained|from_config)",
)
_TRAINER = (
    Setting("fp32-matmul", {"bf16": "True"}, "Train in bfloat16", needs="bf16", unless=("fp16",), first=True),
    Setting("fp32-matmul", {"fp16": "True"}, "Train in float16", needs="fp16", unless=("bf16",), first=True),
    # It raises on a device before Ampere, which has no bfloat16 either.
    Setting(
        "fp32-matmul",
        {"tf32": "True"},
        "Allow TF32 for float32 matrix products",
        needs="bf16",
        first=True,
    ),
    Setting(
        "loader-without-workers",
        {"dataloader_num_workers": "{workers}", "dataloader_persistent_workers": "True"},
        "Use {workers} worker processes",
        where_known=("dataloader_persistent_workers",),
    ),
    Setting(
        "too-few-loader-workers", {"dataloader_num_workers": "{workers}"}, "Use {workers} worker processes"
    ),
    Setting("loader-workers-restart", {"dataloader_persistent_workers": "True"}, "Keep the loader's workers"),
    Setting("pageable-host-copy", {"dataloader_pin_memory": "True"}, "Pin the loader's batches"),
    Setting(
        "blocking-host-copy",
        {"accelerator_config": '{"non_blocking": True}'},
        "Copy batches with non_blocking=True",
        unless=("accelerator_config",),
    ),
    Setting("launch-bound", {"torch_compile": "True"}, "Compile the model"),
    Setting("unfused-elementwise", {"torch_compile": "True"}, "Compile the model"),
    Setting("per-tensor-optimizer", {"optim": '"adamw_torch_fused"'}, "Use the fused AdamW"),
    Setting("memory-headroom", {"gradient_checkpointing": "True"}, "Recompute activations in backward"),
    Setting(
        "needless-checkpointing",
        {"gradient_checkpointing": "False"},
        "Keep the activations",
        only=(("gradient_checkpointing", (True,)),),
        first=True,
        written=(("gradient_checkpointing", True),),
    ),
    Setting("small-batch", {"per_device_train_batch_size": "{twice}"}, "Double the batch", first=True),
    Setting(
        "padded-batches",
        {"train_sampling_strategy": '"group_by_length"'},
        "Put samples of similar length into a batch",
        by_length=True,
    ),
    Setting(
        "padded-batches",
        {"group_by_length": "True"},
        "Put samples of similar length into a batch",
        by_length=True,
    ),
    Setting(
        "cache-emptied-in-step",
        {"torch_empty_cache_steps": "None"},
        "Do not empty the cache",
    ),
    Setting(
        "unused-parameter-search",
        {"ddp_find_unused_parameters": "False"},
        "Do not look for unused parameters",
        first=True,
    ),
    Setting(
        "framework-wait",
        {"logging_nan_inf_filter": "False"},
        "Do not look for NaN in the loss of each step",
        text="isnan",
    ),
    Setting("framework-wait", {"logging_steps": "50"}, "Log every 50 steps", text=".mean().item()"),
    Setting(
        "framework-wait",
        {"include_num_input_tokens_seen": "False"},
        "Do not count the tokens",
        text="num_input_tokens_seen",
    ),
)
_FUSED = Setting(
    "hand-written-attention",
    {"attn_implementation": '"sdpa"'},
    "Use fused attention",
    first=True,
    functions=("eager_attention_forward",),
    written=(("attn_implementation", "eager"), ("_attn_implementation", "eager")),
)
_LOADED = (
    _FUSED,
    Setting(
        "fp32-matmul",
        {"dtype": "{bfloat16}"},
        "Load the weights in bfloat16",
        needs="bf16",
        inference=True,
        first=True,
        unless=("torch_dtype",),
    ),
    Setting(
        "fp32-matmul",
        {"torch_dtype": "{bfloat16}"},
        "Load the weights in bfloat16",
        needs="bf16",
        inference=True,
        first=True,
        unless=("dtype",),
    ),
)
#: peft keeps its adapters in float32 beside weights in bfloat16.
_FROZEN = tuple(
    replace(one, title="Load the frozen weights in bfloat16", inference=False, frozen="peft", first=False)
    for one in _LOADED
    if one.inference
)
_OF_MODELS = (
    ("attn_implementation", '"attn_implementation"'),
    ("dtype", '"dtype"'),
    ("torch_dtype", '"torch_dtype"'),
)

_CACHE = Setting(
    "generation-without-cache",
    {"use_cache": "True"},
    "Keep the keys and values of earlier tokens",
    written=(("generation_config.use_cache", False),),
)
#: What is left is launches: of a cache of one size, transformers compiles decoding into CUDA graphs.
_CACHES = (
    _CACHE,
    replace(
        _CACHE,
        arguments={**_CACHE.arguments, "cache_implementation": '"static"'},
        title="Keep them in a cache of one size, so that decoding is compiled and replayed as a graph",
        needs="graphs",
        unless=("past_key_values",),
        written=(),
    ),
)
#: Its activations of several operators, by the name of the one that is one call.
_WRITTEN_OUT = {
    "gelu_pytorch_tanh": (
        ("gelu_new", "gelu_fast", "gelu_accurate", "gelu_python_tanh"),
        (
            "NewGELUActivation.forward",
            "FastGELUActivation.forward",
            "AccurateGELUActivation.forward",
            "GELUTanh._gelu_tanh_python",
        ),
    ),
    "gelu": (("gelu_python",), ("GELUActivation._gelu_python",)),
}
_ACTIVATIONS = tuple(
    Setting(
        "hand-written-activation",
        {argument: f'"{fused}"'},
        f"Use {fused}, which is one kernel",
        functions=functions,
        only=((argument, (None, *names)),),
    )
    for fused, (names, functions) in _WRITTEN_OUT.items()
    for argument in ("activation_function", "hidden_act", "dense_act_fn")
)
#: A dataclass since version 5; before, each configuration has a constructor of its own.
_CONFIGURATIONS = tuple(
    Construction(
        "transformers.configuration_utils",
        name,
        ("transformers",),
        (replace(_FUSED, only=(("attn_implementation", ("eager",)),)), *_ACTIVATIONS),
        method=method,
        called=("for_model", "from_pretrained"),
        passed_on=(("attn_implementation", "attn_implementation"),),
        sizes=("vocab_size",),
        makes=("transformers.modeling_utils",),
    )
    for name, method in (("PreTrainedConfig", "__post_init__"), ("PretrainedConfig", "__init__"))
)
_STATIC = (
    Setting(
        "launch-bound",
        {"cache_implementation": '"static"'},
        "Keep the cache at one size, so that decoding is compiled and replayed as a graph",
        unless=("past_key_values",),
    ),
    Setting(
        "cat-in-loop",
        {"cache_implementation": '"static"'},
        "Keep the cache at one size, and write each token into it (on a GPU, decoding is compiled then)",
        unless=("past_key_values",),
    ),
)

CONSTRUCTIONS = (
    *_CONFIGURATIONS,
    Construction(
        "transformers.training_args",
        "TrainingArguments",
        (),
        _TRAINER,
        method="__post_init__",
        accumulates="gradient_accumulation_steps",
        epochs="num_train_epochs",
        parsers=(
            "parse_args_into_dataclasses",
            "parse_args_and_config",
            "parse_dict",
            "parse_json_file",
            "parse_yaml_file",
        ),
    ),
    Construction(
        "transformers.modeling_utils",
        "PreTrainedModel",
        ("transformers", "peft"),
        (*_LOADED, *_FROZEN),
        method="from_pretrained",
        called=("from_pretrained",),
        passed_on=_OF_MODELS,
    ),
    Construction(
        "transformers.modeling_utils",
        "PreTrainedModel",
        ("transformers", "peft"),
        (*_LOADED, *_FROZEN),
        method="_from_config",
        called=("from_config", "_from_config"),
        passed_on=_OF_MODELS,
    ),
    # Made from its configuration: the attention is chosen where that is written.
    Construction("transformers.modeling_utils", "PreTrainedModel", ("transformers",), (_FUSED,)),
    Construction(
        "transformers.modeling_utils",
        "PreTrainedModel",
        ("transformers", "peft"),
        (
            Setting(
                "needless-checkpointing",
                {},
                "Keep the activations",
                first=True,
                undo=True,
                # Inputs ask for gradients so that checkpoints of a frozen model have any.
                beside=("enable_input_require_grads", "use_cache"),
            ),
        ),
        method="gradient_checkpointing_enable",
        called=("gradient_checkpointing_enable",),
    ),
    Construction(
        "transformers.generation.configuration_utils",
        "GenerationConfig",
        ("transformers",),
        (*_STATIC, *(replace(one, only=(("use_cache", (False,)),)) for one in _CACHES)),
        passed_on=(("cache_implementation", "cache_implementation"), ("use_cache", "use_cache")),
    ),
    Construction(
        "transformers.generation.utils",
        "GenerationMixin",
        ("transformers",),
        (*_STATIC, *_CACHES),
        method="generate",
        fields=("transformers.generation.configuration_utils", "GenerationConfig"),
        called=("generate",),
    ),
)
