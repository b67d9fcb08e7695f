"""Lightning: its Trainer, under both of the package's names."""

from __future__ import annotations

from . import Construction, Setting

_SETTINGS = (
    Setting("fp32-matmul", {"precision": '"bf16-mixed"'}, "Train in bfloat16", needs="bf16"),
    Setting("fp32-matmul", {"precision": '"16-mixed"'}, "Train in float16", needs="fp16"),
    Setting("untuned-convolution", {"benchmark": "True"}, "Turn on cuDNN's benchmark"),
    Setting("anomaly-detection-on", {"detect_anomaly": "False"}, "Leave anomaly detection off"),
)

CONSTRUCTIONS = tuple(
    Construction(module, "Trainer", (), _SETTINGS)
    for module in ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")
)
