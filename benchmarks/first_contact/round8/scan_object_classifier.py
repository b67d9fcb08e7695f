"""Point cloud classification (residual PointMLP without grouping) of scanned objects."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    objects: int = 2048
    points: int = 1024
    batch_size: int = 128
    width: int = 384
    blocks: int = 6
    classes: int = 15
    epochs: int = 16
    workers: int = 8
    lr: float = 1e-3


class ScanObjects(Dataset):
    def __init__(self, cfg: Config):
        rng = np.random.default_rng(1)
        self.clouds = rng.standard_normal((cfg.objects, cfg.points * 2, 3), dtype=np.float32)
        self.labels = rng.integers(0, cfg.classes, cfg.objects)
        self.clouds *= (0.5 + self.labels[:, None, None] / cfg.classes).astype(np.float32)
        self.points = cfg.points

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        cloud = self.clouds[i]
        keep = np.random.permutation(len(cloud))[: self.points]
        angle = np.random.uniform(0, 2 * np.pi)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=np.float32)
        return torch.from_numpy(cloud[keep] @ turn), int(self.labels[i])


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class PointMLP(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.embed = nn.Linear(3, cfg.width)
        self.body = nn.Sequential(*[Residual(cfg.width) for _ in range(cfg.blocks)])
        self.head = nn.Sequential(nn.Linear(cfg.width, 256), nn.GELU(), nn.Linear(256, cfg.classes))

    def forward(self, points):
        return self.head(self.body(self.embed(points)).amax(dim=1))


def fit(cfg: Config, device: torch.device):
    cuda = device.type == "cuda"
    loader = DataLoader(  # flaw: loader-workers-restart
        ScanObjects(cfg),
        batch_size=cfg.batch_size,
        shuffle=True,
        num_workers=cfg.workers,
        pin_memory=cuda,
        drop_last=True,
    )
    model = PointMLP(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        correct = torch.zeros((), device=device)
        for points, labels in loader:
            points = points.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(points)
                loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            correct += (logits.detach().argmax(1) == labels).sum()
        print(f"{epoch:3d}  accuracy {correct.item() / (len(loader) * cfg.batch_size):.3f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    if torch.cuda.is_available():
        fit(Config(), torch.device("cuda"))
    else:
        fit(Config(objects=16, points=32, batch_size=4, width=16, epochs=2, workers=1), torch.device("cpu"))
