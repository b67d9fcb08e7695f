"""Footprint segmentation from polygons."""

import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    side: int = 96
    batch: int = 48
    width: int = 48
    steps: int = 60
    workers: int = 12
    lr: float = 1e-3
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def footprint(rng, side, corners=10):
    angle = np.sort(rng.random(corners)) * 2 * np.pi
    radius = side * (0.2 + 0.25 * rng.random(corners))
    return np.stack([side / 2 + radius * np.cos(angle), side / 2 + radius * np.sin(angle)], 1)


def crosses(x, y, a, b):
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((a[1] > y) != (b[1] > y)) & (x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0])


def rasterise(corners, side):
    edges = list(zip(corners.tolist(), np.roll(corners, -1, 0).tolist()))
    y, x = np.mgrid[:side, :side].astype(np.float32)
    return (sum(crosses(x, y, a, b).astype(np.int32) for a, b in edges) % 2).astype(np.float32)


class Footprints(Dataset):
    def __init__(self, count, side):
        self.count, self.side = count, side

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        mask = rasterise(footprint(rng, self.side), self.side)
        image = rng.standard_normal((3, self.side, self.side), dtype=np.float32) * 0.3 + mask
        return torch.from_numpy(image), torch.from_numpy(mask)


class Net(nn.Module):
    def __init__(self, w):
        super().__init__()
        sizes = [3, w, w, 2 * w, 2 * w, w]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in zip(sizes, sizes[1:]))
        self.head = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        for conv in self.convs:
            x = F.relu(conv(x), inplace=True)
        return self.head(x)[:, 0]


def train(cfg):
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    net = Net(cfg.width).to(cfg.device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), cfg.lr, fused=True)
    loader = DataLoader(
        Footprints(cfg.batch * cfg.steps, cfg.side), cfg.batch, num_workers=cfg.workers, pin_memory=cfg.device.type == "cuda"
    )
    mean = torch.zeros((), device=cfg.device)
    for image, mask in loader:
        image = image.to(cfg.device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        mask = mask.to(cfg.device, non_blocking=True)
        with torch.autocast(cfg.device.type, torch.bfloat16):
            out = net(image)
        loss = F.binary_cross_entropy_with_logits(out.float(), mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean += loss.detach() / cfg.steps
    print(f"mean loss {mean.item():.4f}")


if __name__ == "__main__":
    config = Config(side=16, batch=2, width=8, steps=30, workers=2) if os.environ.get("SMALL") else Config()
    train(config)
