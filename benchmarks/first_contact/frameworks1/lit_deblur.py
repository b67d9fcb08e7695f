"""Deblurring: a residual conv net, one LightningModule, no data module."""
import os

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Callback
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
cuda = torch.cuda.is_available()


class Cells(Dataset):
    """Microscope-like tiles: blobs on a dark ground, kept as uint8."""

    def __init__(self, tiles, side):
        g = torch.Generator().manual_seed(5)
        ground = torch.rand(256, 3, side // 8, side // 8, generator=g)
        self.tiles = (F.interpolate(ground, size=(side, side), mode="bicubic").clamp(0, 1) * 255).to(torch.uint8)
        self.count = tiles

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.rot90(self.tiles[i % 256], i // 256 % 4, (1, 2)).contiguous()


class ResBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch), nn.SiLU(inplace=True),
            nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch),
        )

    def forward(self, x):
        return F.silu(x + self.body(x))


class Deblur(pl.LightningModule):
    def __init__(self, ch: int, blocks: int, lr: float = 2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Conv2d(3, ch, 5, padding=2)
        self.blocks = nn.Sequential(*[ResBlock(ch) for _ in range(blocks)])
        self.out = nn.Conv2d(ch, 3, 3, padding=1)
        kernel = torch.ones(3, 1, 5, 5) / 25
        self.register_buffer("kernel", kernel, persistent=False)

    def on_fit_start(self):
        self.to(memory_format=torch.channels_last)
        if cuda:
            for block in self.blocks:
                block.compile()

    def forward(self, blurred):
        return blurred + self.out(self.blocks(self.stem(blurred)))

    def on_after_batch_transfer(self, tiles, dataloader_idx):
        sharp = tiles.float().div_(255).contiguous(memory_format=torch.channels_last)
        return F.conv2d(sharp, self.kernel, padding=2, groups=3), sharp

    def training_step(self, batch, _):
        blurred, sharp = batch
        loss = F.l1_loss(self(blurred).float(), sharp)
        self.log("loss", loss.detach())
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, fused=cuda)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.trainer.max_steps)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


class Report(Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step % 50 == 0:
            print(trainer.global_step, float(trainer.callback_metrics["loss"]))


def main():
    pl.seed_everything(0, workers=True)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Cells(tiles=120 if SMALL else 64 * 150, side=32 if SMALL else 64),
        batch_size=4 if SMALL else 64,
        shuffle=True,
        drop_last=True,
        num_workers=0 if SMALL else 6,
        pin_memory=cuda,
        persistent_workers=not SMALL,
    )
    trainer = pl.Trainer(
        max_steps=30 if SMALL else 150,
        accelerator="auto",
        devices=1,
        precision="bf16-mixed" if cuda else "32-true",
        benchmark=True,
        callbacks=[Report()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Deblur(ch=16 if SMALL else 128, blocks=2 if SMALL else 10), loader)


main()
