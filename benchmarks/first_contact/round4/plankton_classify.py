from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Settings:
    side: int = 128
    classes: int = 40
    images: int = 4096
    batch: int = 96
    width: int = 64
    epochs: int = 2
    lr: float = 0.05

    @classmethod
    def from_env(cls) -> Settings:
        if os.environ.get("SMALL"):
            return cls(side=32, images=120, batch=8, width=8, epochs=2)
        return cls()


class PlanktonImages(Dataset):
    def __init__(self, cfg: Settings) -> None:
        rng = np.random.default_rng(7)
        self.images = rng.integers(0, 256, (cfg.images, cfg.side, cfg.side), dtype=np.uint8)
        self.labels = rng.integers(0, cfg.classes, cfg.images)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = np.rot90(self.images[index], k=np.random.randint(4))
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        x = image.astype(np.float32) / 255.0
        x = x ** np.random.uniform(0.8, 1.25)
        x = x + np.random.normal(0.0, 0.02, x.shape).astype(np.float32)
        x = (x - x.mean()) / (x.std() + 1e-4)
        return torch.from_numpy(np.ascontiguousarray(x))[None], int(self.labels[index])


class Residual(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.c1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.n1 = nn.BatchNorm2d(cout)
        self.c2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.n2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if (stride > 1 or cin != cout) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.n1(self.c1(x)), inplace=True)
        return F.relu(self.n2(self.c2(h)) + self.skip(x), inplace=True)


def build(cfg: Settings) -> nn.Module:
    w = cfg.width
    return nn.Sequential(
        nn.Conv2d(1, w, 3, 1, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
        Residual(w, w, 1), Residual(w, 2 * w, 2), Residual(2 * w, 2 * w, 1),
        Residual(2 * w, 4 * w, 2), Residual(4 * w, 8 * w, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, cfg.classes))


def run(cfg: Settings) -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(PlanktonImages(cfg), batch_size=cfg.batch, shuffle=True, drop_last=True, pin_memory=device.type == "cuda")  # flaw: loader-without-workers
    model = build(cfg).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), cfg.lr, momentum=0.9, nesterov=True, fused=device.type == "cuda")
    for epoch in range(cfg.epochs):
        total = torch.zeros((), device=device)
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16):
                loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.3f}")


if __name__ == "__main__":
    run(Settings.from_env())
