import os

import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, random_split

SMALL = os.environ.get("SMALL") == "1"


class Gestures(Dataset):
    """Recorded hand paths: smoothed when they are read."""

    def __init__(self, count=1200 if SMALL else 12000, length=64 if SMALL else 512):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        path = torch.randn(6, self.length, generator=generator).cumsum(1)
        for _ in range(8):
            path = F.avg_pool1d(F.pad(path[None], (2, 2), mode="replicate"), 5, 1)[0]
        return path, index % 12


class GestureData(pl.LightningDataModule):
    def __init__(self, batch_size: int = 16 if SMALL else 64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        full = Gestures()
        self.train, self.val = random_split(full, [len(full) - 100, 100])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)  # expert: num_workers

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)


class LitGestures(pl.LightningModule):
    def __init__(self, width=32 if SMALL else 256, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv1d(6, width, 7, 2, 3), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2), nn.ReLU(),
        )
        self.head = nn.Linear(width, 12)

    def forward(self, x):
        return self.head(self.net(x).mean(-1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    pl.seed_everything(1)
    trainer = pl.Trainer(
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        num_sanity_val_steps=0,
        detect_anomaly=True,  # expert: detect_anomaly=False
        gradient_clip_val=1.0,
    )
    trainer.fit(LitGestures(), datamodule=GestureData())
