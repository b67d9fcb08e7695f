"""Arrhythmia classes from 12-lead ECGs, with pytorch_lightning.

The class layout follows LightningCLI: `CONFIG` is what `config.yaml` holds.
"""
import os
import tempfile
import time

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"

CONFIG = {
    "seed_everything": 17,
    "model": {"width": 16 if SMALL else 128, "blocks": 3 if SMALL else 8, "classes": 9, "lr": 1e-3},
    "data": {
        "records": 3200 if SMALL else 20000,
        "batch_size": 16 if SMALL else 256,
        "samples": 1000 if SMALL else 2500,
        "num_workers": 8,
    },
    "trainer": {
        "precision": "bf16-mixed" if torch.cuda.is_available() else "32-true",
        "max_steps": 200 if SMALL else 80,
        "max_epochs": -1,
        "benchmark": True,
        "detect_anomaly": False,
        "gradient_clip_val": 1.0,
        "log_every_n_steps": 20,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "logger": False,
    },
}


class Ecgs(Dataset):
    """Beats with a shape by class, baseline wander, mains hum, and an augmentation for each sample."""

    def __init__(self, records, samples, classes):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(0, classes, size=records)
        self.seeds = rng.integers(0, 2**31, size=records)
        self.samples = samples

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        rng = np.random.default_rng(self.seeds[index])
        label = self.labels[index]
        time_axis = np.arange(self.samples) / 250
        period = 0.6 + 0.08 * label + 0.02 * rng.standard_normal()
        phase = (time_axis[None] + rng.uniform(0, 0.05, size=(12, 1))) % period
        signal = np.exp(-(((phase - 0.2) / 0.02) ** 2)) + 0.3 * np.exp(-(((phase - 0.4) / 0.05) ** 2))
        signal += 0.2 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4) * time_axis)
        signal += 0.05 * np.sin(2 * np.pi * 50 * time_axis) + 0.05 * rng.standard_normal(signal.shape)
        spectrum = np.fft.rfft(signal, axis=1)
        frequency = np.fft.rfftfreq(self.samples, 1 / 250)
        spectrum[:, (frequency < 0.5) | (frequency > 40)] = 0
        signal = np.fft.irfft(spectrum, n=self.samples, axis=1)
        return torch.from_numpy(signal.astype(np.float32)), int(label)


class EcgData(pl.LightningDataModule):
    def __init__(self, records, batch_size, samples, num_workers, classes=9):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        self.train = Ecgs(self.hparams.records, self.hparams.samples, self.hparams.classes)

    def train_dataloader(self):
        workers = self.hparams.num_workers
        return DataLoader(
            self.train,
            batch_size=self.hparams.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            pin_memory=torch.cuda.is_available(),
        )


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, width, 9, padding=4, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(inplace=True),
            nn.Conv1d(width, width, 9, padding=4, bias=False),
            nn.BatchNorm1d(width),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


class EcgModel(pl.LightningModule):
    def __init__(self, width, blocks, classes, lr):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Sequential(nn.Conv1d(12, width, 15, stride=2, padding=7, bias=False), nn.BatchNorm1d(width))
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(blocks)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.stem(x))).mean(dim=2))

    def training_step(self, batch, batch_idx):
        signal, label = batch
        loss = nn.functional.cross_entropy(self(signal), label, label_smoothing=0.1)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01, fused=True)


class Speed(pl.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        step = trainer.global_step
        if step % 20 == 0:
            now = time.perf_counter()
            if step > 20:
                print(f"step {step}: {50 * (now - self.then):.1f} ms each, loss {outputs['loss'].item():.3f}", flush=True)
            self.then = now


def main(config):
    pl.seed_everything(config["seed_everything"])
    data = EcgData(**config["data"])
    model = EcgModel(**config["model"])
    with tempfile.TemporaryDirectory(prefix="ecg-") as folder:
        trainer = pl.Trainer(default_root_dir=folder, callbacks=[Speed()], **config["trainer"])
        trainer.fit(model, datamodule=data)


if __name__ == "__main__":
    main(CONFIG)
