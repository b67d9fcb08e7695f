"""timm: its models, and what its training script makes: a loader, an optimizer, an average of the weights."""

from __future__ import annotations

from . import Construction, Setting

MODELS = (r"timm\.create_model", r"timm\.models\..+")
CHECKPOINTING = ("set_grad_checkpointing",)  # open_clip's models have it as well


def _average(name: str, device: str, *more: Setting, newer: str = "") -> Construction:
    """An average of the weights. Elsewhere than the model, it copies each tensor there in each step."""
    setting = Setting(
        "framework-wait",
        {"device": device},
        "Keep the average where the model is",
        text=".to(device=self.device)",
        only=(("device", ("cpu",)),),
        renamed=newer,
    )
    return Construction(
        "timm.utils.model_ema",
        name,
        ("timm",),
        (setting, *more),
        passed_on=((newer, f"class {newer}"),) if newer else (),
    )


#: One operation for all weights, and not four for each: where a device is given, one for each.
_AT_ONCE = tuple(
    Setting(
        "parameter-loop",
        arguments,
        "Update all averages at once",
        first=True,
        functions=("ModelEmaV2.update", "ModelEmaV2._update"),
        only=(("device", (given,)),),
        renamed="ModelEmaV3",
    )
    for given, arguments in ((None, {}), ("cpu", {"device": "None"}))
)
CONSTRUCTIONS = (
    _average("ModelEma", '""'),
    _average("ModelEmaV2", "None", *_AT_ONCE, newer="ModelEmaV3"),
    _average("ModelEmaV3", "None"),
    Construction(
        "timm.layers.config",
        "set_fused_attn",
        ("timm",),
        (
            Setting(
                "hand-written-attention",
                {},
                "Let the models use fused attention",
                only=(("enable", (False,)),),
                first=True,
                undo=True,
            ),
        ),
        method="",
    ),
    Construction(
        "timm.data.loader",
        "create_loader",
        (),
        (
            Setting(
                "loader-without-workers",
                {"num_workers": "{workers}", "persistent_workers": "True"},
                "Use {workers} worker processes",
                where_known=("persistent_workers",),
                first=True,
            ),
            Setting(
                "too-few-loader-workers",
                {"num_workers": "{workers}"},
                "Use {workers} worker processes",
                first=True,
            ),
            Setting(
                "loader-workers-restart",
                {"persistent_workers": "True"},
                "Keep the loader's workers",
                first=True,
            ),
            Setting("pageable-host-copy", {"pin_memory": "True"}, "Pin the loader's batches", first=True),
        ),
        method="",
    ),
    Construction(
        "timm.optim._optim_factory",
        "create_optimizer_v2",
        (),
        (Setting("per-tensor-optimizer", {"fused": "True"}, "Use the fused optimizer", unless=("foreach",)),),
        method="",
        passed_on=(("fused", "kwargs"),),
    ),
)
