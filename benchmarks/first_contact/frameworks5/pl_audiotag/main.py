import os
import tempfile

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger

from data import AudioTagDataModule
from model import SpectrogramTransformer

SMALL = os.environ.get("SMALL") == "1"

CONFIG = dict(
    data=dict(
        batch_size=2 if SMALL else 32,
        n_clips=16 if SMALL else 3200,
        n_mels=32 if SMALL else 128,
        n_frames=128 if SMALL else 1024,
        n_classes=16 if SMALL else 528,
    ),
    net=dict(dim=32, depth=2, heads=2) if SMALL else dict(dim=768, depth=12, heads=12),
    trainer=dict(
        max_epochs=2 if SMALL else 10,
        precision="bf16-mixed",
        detect_anomaly=True,  # flaw: anomaly-detection-on
        log_every_n_steps=100,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    ),
)


def main():
    pl.seed_everything(7)
    torch.set_float32_matmul_precision("high")
    data = AudioTagDataModule(**CONFIG["data"])
    shape = {k: CONFIG["data"][k] for k in ("n_mels", "n_frames", "n_classes")}
    steps = CONFIG["data"]["n_clips"] // CONFIG["data"]["batch_size"] * CONFIG["trainer"]["max_epochs"]
    model = SpectrogramTransformer(**shape, **CONFIG["net"], total=steps)
    trainer = pl.Trainer(
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        devices=1,
        logger=CSVLogger(tempfile.mkdtemp(prefix="audiotag_")),
        **CONFIG["trainer"],
    )
    trainer.fit(model, datamodule=data)
    print("done", trainer.global_step, float(trainer.callback_metrics["train/loss"]))


if __name__ == "__main__":
    main()
