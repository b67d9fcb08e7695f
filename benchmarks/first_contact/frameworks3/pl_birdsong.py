"""Species of birds from short recordings. Recordings are read as 16-bit samples and turned into log-mel pictures."""
import os

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
RATE, FRAME, HOP, MELS = 16000, 512, 128, 64


class Recordings(Dataset):
    def __init__(self, count, seconds, species, seed):
        rng = np.random.default_rng(seed)
        self.label = rng.integers(0, species, count)
        self.pitch = 800 + 150 * self.label + rng.normal(0, 30, count)
        self.noise = (rng.standard_normal(RATE * 8) * 3000).astype(np.int16)
        self.samples = int(RATE * seconds)
        self.window = np.hanning(FRAME).astype(np.float32)
        edges = np.geomspace(4, FRAME // 2, MELS + 2)
        bins = np.arange(FRAME // 2 + 1)[:, None]
        up = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
        down = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
        self.mel = np.clip(np.minimum(up, down), 0, None).astype(np.float32)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        t = np.arange(self.samples, dtype=np.float32) / RATE
        at = i * 37 % (len(self.noise) - self.samples)
        wave = np.sin(2 * np.pi * self.pitch[i] * t) * 0.3 + self.noise[at : at + self.samples] / 32768
        frames = np.lib.stride_tricks.sliding_window_view(wave.astype(np.float32), FRAME)[::HOP]
        power = np.abs(np.fft.rfft(frames * self.window, axis=1)) ** 2
        picture = np.log(power.astype(np.float32) @ self.mel + 1e-6)
        return torch.from_numpy((picture - picture.mean()).T.copy()[None]), int(self.label[i])


class BirdData(pl.LightningDataModule):
    def __init__(
        self,
        batch_size: int = 128,
        seconds: float = 1.5,
        count: int = 12800,
        species: int = 24,
        num_workers: int = 0,  # expert: num_workers=8
    ):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        h = self.hparams
        self.train = Recordings(h.count, h.seconds, h.species, seed=1)

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


class BirdNet(pl.LightningModule):
    def __init__(self, width=768, depth=6, species=24, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Conv1d(MELS, width, 3, stride=2, padding=1)
        layer = nn.TransformerEncoderLayer(
            width, width // 32, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, species)

    def forward(self, pictures):
        x = self.stem(pictures.squeeze(1)).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))

    def training_step(self, batch, batch_idx):
        pictures, species = batch
        loss = F.cross_entropy(self(pictures), species)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def on_train_epoch_end(self):
        print(f"epoch {self.current_epoch}: {self.trainer.callback_metrics['train_loss']:.4f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=True)


if __name__ == "__main__":
    pl.seed_everything(4)
    data = BirdData(batch_size=24, seconds=1.2, count=720) if SMALL else BirdData()
    net = BirdNet(width=64, depth=1) if SMALL else BirdNet()
    trainer = pl.Trainer(
        max_epochs=3,
        devices=1,
        precision="32-true",  # expert-gpu: precision="bf16-mixed"
        detect_anomaly=True,  # expert: detect_anomaly=False
        **dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False),
    )
    trainer.fit(net, datamodule=data)
