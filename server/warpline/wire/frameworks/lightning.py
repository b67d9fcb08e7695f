"""Lightning: its Trainer and Fabric, under both of the package's names."""

from __future__ import annotations

from . import Construction, Setting

#: Its mixed precision raises where gradients of such an optimizer are clipped.
_CLIPPED = ("gradient_clip_val", "clip_gradients")
_PRECISION = tuple(
    Setting("fp32-matmul", {"precision": code}, title, needs=needs, first=True, unfused=_CLIPPED)
    for code, title, needs in (
        ('"bf16-mixed"', "Train in bfloat16", "bf16"),
        ('"16-mixed"', "Train in float16", "fp16"),
    )
)
#: ``Tensor.item()`` of what is logged, in ``utilities/apply_func.py``.
_READ = "value.item()"
_SETTINGS = (
    *_PRECISION,
    Setting(
        "untuned-convolution", {"benchmark": "True"}, "Turn on cuDNN's benchmark", unless=("deterministic",)
    ),
    Setting("anomaly-detection-on", {"detect_anomaly": "False"}, "Leave anomaly detection off", first=True),
    Setting(
        "framework-wait",
        {"log_every_n_steps": "50"},
        "Log every 50 steps",
        text=_READ,
        only=(("log_every_n_steps", (1, 2, 3, 4, 5)),),
    ),
    Setting(
        "framework-wait",
        {"enable_progress_bar": "False"},
        "Turn off the progress bar, which reads the metrics of each step",
        text=_READ,
        without="ProgressBar(",  # the trainer raises where a callback is one
    ),
    Setting(
        "unused-parameter-search",
        {"strategy": '"ddp"'},
        "Do not look for unused parameters",
        only=(("strategy", ("ddp_find_unused_parameters_true",)),),
        first=True,
    ),
)
#: The call that makes the trainer from the command line.
_CLI = (("LightningCLI", "trainer_defaults"),)
_FILES = ("lightning", "pytorch_lightning", "lightning_fabric")

CONSTRUCTIONS = (
    *(
        Construction(
            module,
            "Trainer",
            (),
            _SETTINGS,
            files=_FILES,
            within=_CLI,
            accumulates="accumulate_grad_batches",
            epochs="max_epochs",
        )
        for module in ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")
    ),
    Construction("lightning.fabric.fabric", "Fabric", (), _PRECISION, files=_FILES),
    Construction("lightning_fabric.fabric", "Fabric", (), _PRECISION, files=_FILES),
)
