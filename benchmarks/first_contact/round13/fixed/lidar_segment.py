"""Per-point semantic segmentation of lidar sweeps with a scene-context MLP."""
import dataclasses
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


@dataclasses.dataclass(frozen=True)
class Cfg:
    sweeps: int = 16 if TINY else 3200
    points: int = 256 if TINY else 32768
    pool: int = 4 if TINY else 96
    fields: int = 8
    width: int = 32 if TINY else 192
    depth: int = 2 if TINY else 3
    classes: int = 24
    batch: int = 4 if TINY else 32
    epochs: int = 2 if TINY else 6
    workers: int = 0 if TINY else 4


class Sweeps(Dataset):
    """Sweeps of a drive; every sweep is a rolled copy of one of the recordings in the pool."""

    def __init__(self, cfg):
        rng = np.random.default_rng(3)
        self.cfg = cfg
        self.cloud = rng.standard_normal((cfg.pool, cfg.points, cfg.fields), dtype=np.float32)
        score = self.cloud[..., :3].sum(-1) + 0.5 * self.cloud[..., 3]
        self.label = np.digitize(score, np.linspace(-4, 4, cfg.classes - 1)).astype(np.uint8)

    def __len__(self):
        return self.cfg.sweeps

    def __getitem__(self, i):
        k = i % self.cfg.pool
        return torch.from_numpy(self.cloud[k]), torch.from_numpy(self.label[k]), i


class SweepBatch:
    __slots__ = ("xyz", "label", "ids")

    def __init__(self, xyz, label, ids):
        self.xyz = xyz
        self.label = label
        self.ids = ids

    @classmethod
    def gather(cls, samples):
        xyz, label, ids = zip(*samples)
        return cls(torch.stack(xyz), torch.stack(label), ids)

    def pin_memory(self):
        self.xyz = self.xyz.pin_memory()
        self.label = self.label.pin_memory()
        return self

    def onto(self, where):
        xyz = self.xyz.to(where, non_blocking=True)
        label = self.label.to(where, non_blocking=True)
        return xyz, label.long()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.down(nn.functional.gelu(self.up(self.norm(x))))
        return x + h + h.mean(1, keepdim=True)


class Segmenter(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Linear(cfg.fields, cfg.width)
        self.blocks = nn.Sequential(*(Block(cfg.width) for _ in range(cfg.depth)))
        self.head = nn.Linear(cfg.width, cfg.classes)

    def forward(self, x, y):
        logits = self.head(self.blocks(self.stem(x)))
        return nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())


def main():
    cfg = Cfg()
    torch.manual_seed(0)
    cuda = device == "cuda"
    loader = DataLoader(Sweeps(cfg), cfg.batch, shuffle=True, num_workers=cfg.workers,
                        collate_fn=SweepBatch.gather, pin_memory=cuda, drop_last=True,
                        persistent_workers=cfg.workers > 0,
                        prefetch_factor=3 if cfg.workers else None)
    model = Segmenter(cfg).to(device)
    if not TINY:
        for block in model.blocks:
            block.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=cuda)
    t0 = time.time()
    for epoch in range(cfg.epochs):
        total = torch.zeros((), device=device)
        for batch in loader:
            xyz, label = batch.onto(device)
            with torch.autocast(device, torch.bfloat16, enabled=cuda):
                loss = model(xyz, label)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            total += loss.detach()
        print(f"epoch {epoch} loss {total.item() / len(loader):.4f}")
    print(f"done in {time.time() - t0:.1f} s")


if __name__ == "__main__":
    main()
