"""diffusers: its pipelines, and its models in a loop of the user's."""

from __future__ import annotations

from dataclasses import replace

from . import Construction, Setting

MODELS = (
    r"diffusers\.(models\..+\.)?\w*(Model|Model1D|Model2D|Model3D|Transformer2D|AutoencoderKL|ControlNet)",
)
_CHANNELS = Setting(
    "channels-first-conv",
    {},
    "Convert the model to channels_last",
    lines=("{made}.{part}.to(memory_format={channels_last})",),
    call="to",
)
_REGIONS = tuple(
    Setting(
        rule,
        {},
        "Compile the blocks that the model repeats",
        lines=("{made}.{part}.compile_repeated_blocks()",),
        call="compile_repeated_blocks",
    )
    for rule in ("launch-bound", "unfused-elementwise")
)

#: Attention in slices: each one's scores are written to memory.
_WHOLE = Setting(
    "hand-written-attention",
    {},
    "Compute attention at once, by a fused kernel",
    first=True,
    undo=True,
    # Its loops run too many lines to be recorded: the function is not seen.
    operators=("aten::baddbmm", "aten::_softmax", "aten::bmm"),
)
#: Processors that compute attention op by op, where those of the default call torch's fused kernels.
_BETTER = (
    ("AttnProcessor", "AttnProcessor2_0"),
    ("AttnAddedKVProcessor", "AttnAddedKVProcessor2_0"),
)
_OP_BY_OP = tuple(name for name, _ in _BETTER)
_FUSED = Setting(
    "hand-written-attention", {}, "Keep the processors that use fused attention", first=True, undo=True
)
_CHOSEN = replace(_FUSED, only=(("processor", _OP_BY_OP),))
#: The same of one module, as a loop of the script's sets it for each.
_OF_MODULE = replace(
    _CHOSEN, title="Take the processor that uses fused attention", undo=False, classes=_BETTER
)
#: Weights are copied to the device for each call of a module, and the host waits for it.
_ON_DEVICE = tuple(
    Setting(rule, {}, "Leave the weights on the device", text=text, first=True, instead='to("cuda")')
    for rule, text in (("pageable-host-copy", ""), ("framework-wait", "_hf_hook.pre_forward"))
)
_KEPT = Setting("needless-checkpointing", {}, "Keep the activations", first=True, undo=True)


def _method(module: str, name: str, method: str, setting: Setting) -> Construction:
    """A method that switches on what ``setting`` does without."""
    return Construction(module, name, ("diffusers",), (setting,), method=method, called=(method,))


def _offload(method: str) -> Construction:
    both = ("diffusers", "accelerate")
    pipeline = "diffusers.pipelines.pipeline_utils", "DiffusionPipeline"
    return Construction(*pipeline, both, _ON_DEVICE, method=method, called=(method,), files=both)


CONSTRUCTIONS = (
    _method("diffusers.pipelines.pipeline_utils", "DiffusionPipeline", "enable_attention_slicing", _WHOLE),
    _method(
        "diffusers.models.unets.unet_2d_condition", "UNet2DConditionModel", "set_attention_slice", _WHOLE
    ),
    _method(
        "diffusers.models.unets.unet_2d_condition",
        "UNet2DConditionModel",
        "set_default_attn_processor",
        _FUSED,
    ),
    _method(
        "diffusers.models.unets.unet_2d_condition", "UNet2DConditionModel", "set_attn_processor", _CHOSEN
    ),
    _method("diffusers.models.attention", "AttentionMixin", "set_attn_processor", _CHOSEN),
    _method("diffusers.models.attention_processor", "Attention", "set_processor", _OF_MODULE),
    _method("diffusers.models.modeling_utils", "ModelMixin", "enable_gradient_checkpointing", _KEPT),
    Construction(
        "diffusers.training_utils",
        "EMAModel",
        ("diffusers",),
        (
            Setting(
                "parameter-loop",
                {"foreach": "True"},
                "Update all averages at once",
                only=(("foreach", (None, False)),),
                first=True,
                functions=("EMAModel.step",),
            ),
        ),
    ),
    _offload("enable_model_cpu_offload"),
    _offload("enable_sequential_cpu_offload"),
    Construction(
        "diffusers.pipelines.pipeline_utils",
        "DiffusionPipeline",
        ("diffusers", "transformers"),
        (
            # Not bfloat16: some pipelines (DDPM) make NumPy's arrays of the images, which have no such type.
            Setting(
                "fp32-matmul",
                {"torch_dtype": "{float16}"},
                "Load the weights in float16",
                needs="bf16",
                inference=True,
            ),
            _CHANNELS,
            *_REGIONS,
        ),
        method="from_pretrained",
        called=("from_pretrained",),
        passed_on=(("torch_dtype", "torch_dtype"),),
    ),
)
