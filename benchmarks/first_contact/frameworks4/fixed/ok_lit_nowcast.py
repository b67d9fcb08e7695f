"""Rain nowcasting from radar patches: an encoder-only transformer in pytorch_lightning."""
import argparse
import os
import tempfile
import time

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

SMALL = os.environ.get("SMALL") == "1"
CUDA = torch.cuda.is_available()


class RadarDataset(Dataset):
    """Patches of a drifting rain field, all in memory; a whole batch is read by one look-up."""

    def __init__(self, frames, patches, features, history):
        generator = torch.Generator().manual_seed(2)
        field = torch.rand(frames + history, patches, features, generator=generator)
        for _ in range(3):
            field = (field + field.roll(1, 0) + field.roll(1, 1)) / 3
        self.field = (field - field.mean()) / field.std()
        self.history = history

    def __len__(self):
        return len(self.field) - self.history

    def __getitem__(self, indices):
        places = torch.as_tensor(indices)[:, None] + torch.arange(self.history + 1)
        window = self.field[places]
        return window[:, :-1].transpose(1, 2).flatten(2), window[:, -1]


class RadarData(pl.LightningDataModule):
    def __init__(self, batch_size, frames, patches, features, history):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        h = self.hparams
        self.train = RadarDataset(h.frames, h.patches, h.features, h.history)

    def train_dataloader(self):
        sampler = BatchSampler(RandomSampler(self.train), self.hparams.batch_size, drop_last=True)
        return DataLoader(
            self.train,
            sampler=sampler,
            batch_size=None,
            num_workers=1 if SMALL else 4,
            persistent_workers=True,
            pin_memory=CUDA,
        )


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Nowcaster(pl.LightningModule):
    def __init__(self, patches, features, history, width, depth, heads, lr):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Linear(features * history, width)
        self.place = nn.Parameter(0.02 * torch.randn(patches, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, features))
        if CUDA:
            for block in self.blocks:
                block.compile()

    def forward(self, x):
        x = self.embed(x) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def training_step(self, batch, batch_idx):
        past, future = batch
        loss = F.smooth_l1_loss(self(past), future)
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.05, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.hparams.lr, self.trainer.max_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Report(pl.Callback):
    def __init__(self, every):
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx % self.every == 0:
            loss, now = float(outputs["loss"]), time.perf_counter()
            if batch_idx:
                print(f"batch {batch_idx}: loss {loss:.4f}, {1000 * (now - self.then) / self.every:.1f} ms", flush=True)
            self.then = now


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=8 if SMALL else 128)
    parser.add_argument("--width", type=int, default=128 if SMALL else 1024)
    parser.add_argument("--depth", type=int, default=3 if SMALL else 12)
    parser.add_argument("--patches", type=int, default=128 if SMALL else 256)
    parser.add_argument("--steps", type=int, default=120 if SMALL else 200)
    args = parser.parse_args()

    pl.seed_everything(2)
    shape = dict(patches=args.patches, features=64, history=4)
    data = RadarData(args.batch_size, frames=1200 if SMALL else 8000, **shape)
    model = Nowcaster(**shape, width=args.width, depth=args.depth, heads=args.width // 64, lr=3e-4)
    with tempfile.TemporaryDirectory(prefix="radar-") as folder:
        trainer = pl.Trainer(
            max_steps=args.steps,
            max_epochs=-1,
            precision="bf16-mixed" if CUDA else "32-true",
            log_every_n_steps=50,
            callbacks=[Report(every=20)],
            enable_progress_bar=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            logger=False,
            use_distributed_sampler=False,
            default_root_dir=folder,
        )
        trainer.fit(model, datamodule=data)


if __name__ == "__main__":
    main()
