"""diffusers: its pipelines, and its models in a loop of the user's."""

from __future__ import annotations

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

CONSTRUCTIONS = (
    Construction(
        "diffusers.pipelines.pipeline_utils",
        "DiffusionPipeline",
        ("diffusers", "transformers"),
        (
            Setting(
                "fp32-matmul",
                {"torch_dtype": "{bfloat16}"},
                "Load the weights in bfloat16",
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
