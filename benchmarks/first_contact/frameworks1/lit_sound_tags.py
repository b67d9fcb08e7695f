"""Tagging short sounds with a spectrogram transformer (Lightning)."""
import os

import pytorch_lightning as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import MultilabelF1Score

SMALL = os.getenv("SMALL", "") == "1"
RATE, SECONDS, TAGS = 16000, 1 if SMALL else 4, 40


class SyntheticSounds(Dataset):
    """Mixtures of sines with noise: each tag is a frequency."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed
        self.time = torch.arange(RATE * SECONDS) / RATE
        self.window = torch.hann_window(512)
        self.freqs = torch.linspace(120.0, 6000.0, TAGS)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 1_000_003 + i)
        tags = (torch.rand(TAGS, generator=g) < 0.08).float()
        wave = 0.3 * torch.randn(self.time.shape, generator=g)
        for f in self.freqs[tags.bool()]:
            wave = wave + torch.sin(2 * torch.pi * f * self.time)
        spec = torch.stft(wave, 512, hop_length=250, window=self.window, return_complex=True).abs()
        return torch.log1p(spec[:256, : SECONDS * 64]), tags


class SoundData(pl.LightningDataModule):
    def __init__(self, batch_size=48, train_size=4800, val_size=96):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        self.train = SyntheticSounds(self.hparams.train_size, seed=1)
        self.val = SyntheticSounds(self.hparams.val_size, seed=2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True, drop_last=True)  # expert: num_workers=8; pin_memory=True

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.hparams.batch_size)


class SoundTagger(pl.LightningModule):
    def __init__(self, width=512, depth=8, heads=8, lr=3e-4):
        super().__init__()
        self.save_hyperparameters()
        self.patch = nn.Conv2d(1, width, kernel_size=(16, 16), stride=(16, 16))
        tokens = 16 * (SECONDS * 64 // 16)
        self.position = nn.Parameter(torch.zeros(1, tokens, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, TAGS)
        self.f1 = MultilabelF1Score(TAGS)

    def forward(self, spec):
        x = self.patch(spec.unsqueeze(1)).flatten(2).transpose(1, 2)
        x = self.encoder(x + self.position)
        return self.head(self.norm(x).mean(1))

    def training_step(self, batch, batch_idx):
        spec, tags = batch
        loss = F.binary_cross_entropy_with_logits(self(spec), tags)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        spec, tags = batch
        logits = self(spec)
        self.f1(logits, tags.int())
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, tags), on_epoch=True)
        self.log("val_f1", self.f1, on_epoch=True)

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=True)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, self.hparams.lr, self.trainer.estimated_stepping_batches)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


if __name__ == "__main__":
    pl.seed_everything(3)
    data = SoundData(batch_size=4, train_size=120, val_size=8) if SMALL else SoundData()
    model = SoundTagger(width=32, depth=2, heads=2) if SMALL else SoundTagger()
    trainer = pl.Trainer(  # expert: precision="bf16-mixed"
        max_epochs=1,
        accelerator="auto",
        devices=1,
        gradient_clip_val=1.0,
        log_every_n_steps=25,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_checkpointing=False,
        logger=False,
    )
    trainer.fit(model, datamodule=data)
    print({k: float(v) for k, v in trainer.callback_metrics.items()})
