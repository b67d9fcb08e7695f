"""Anchor-free detection of cells in microscope images: heat map + size regression (CenterNet style)."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()


@dataclass
class Config:
    image: int = 384 if GPU else 32
    batch: int = 48 if GPU else 4
    width: int = 128 if GPU else 8
    blocks: int = 6 if GPU else 1
    objects: int = 10
    classes: int = 4
    workers: int = 10 if GPU else 0
    steps: int = 130 if GPU else 3
    lr: float = 3e-4


class CellImages(Dataset):
    """Crops from a few big mosaics held in memory; one item is (uint8 image, boxes)."""

    def __init__(self, cfg):
        rng = np.random.default_rng(0)
        self.cfg = cfg
        self.mosaics = rng.integers(0, 255, (8, 3, 2 * cfg.image, 2 * cfg.image), dtype=np.uint8)

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        s, n = self.cfg.image, self.cfg.objects
        y, x = rng.integers(0, s, 2)
        crop = np.ascontiguousarray(self.mosaics[i % 8, :, y:y + s, x:x + s])
        boxes = np.empty((n, 5), np.float32)  # class, centre x, centre y, w, h in heat-map pixels
        boxes[:, 0] = rng.integers(0, self.cfg.classes, n)
        boxes[:, 1:3] = rng.uniform(0, s // 4 - 1, (n, 2))
        boxes[:, 3:] = rng.uniform(2, s // 16 + 2, (n, 2))
        return crop, boxes


def splat(boxes, classes, size):
    """Gaussian peaks at the box centres, as in the paper; boxes is a (B, n, 5) array."""
    heat = np.zeros((len(boxes), classes, size, size), np.float32)
    for b, image_boxes in enumerate(boxes):
        for c, cx, cy, w, h in image_boxes:
            r = int(max(1.0, 0.4 * min(w, h)))
            x0, x1 = max(0, int(cx) - r), min(size, int(cx) + r + 1)
            y0, y1 = max(0, int(cy) - r), min(size, int(cy) + r + 1)
            gx = np.exp(-(np.arange(x0, x1) - int(cx)) ** 2 / (0.5 * r * r + 1e-6))
            gy = np.exp(-(np.arange(y0, y1) - int(cy)) ** 2 / (0.5 * r * r + 1e-6))
            view = heat[b, int(c), y0:y1, x0:x1]
            np.maximum(view, gy[:, None] * gx[None, :], out=view)
    return torch.from_numpy(heat)


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(h)).add_(x), inplace=True)


class Detector(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        w = cfg.width
        self.stem = nn.Sequential(
            nn.Conv2d(3, w // 2, 7, 2, 3, bias=False), nn.BatchNorm2d(w // 2), nn.ReLU(inplace=True),
            nn.Conv2d(w // 2, w, 3, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True))
        self.body = nn.Sequential(*[Residual(w) for _ in range(cfg.blocks)])
        self.head = nn.Conv2d(w, cfg.classes, 1)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


def to_pinned(t):
    return t.pin_memory() if GPU else t


def main():
    cfg = Config()
    device = torch.device("cuda" if GPU else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model = Detector(cfg).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    loader = DataLoader(CellImages(cfg), cfg.batch, num_workers=cfg.workers, pin_memory=GPU, drop_last=True)
    running = torch.zeros((), device=device)
    for step, (images, boxes) in enumerate(loader):
        images = images.to(device)  # flaw: blocking-host-copy
        heat = to_pinned(splat(boxes.numpy(), cfg.classes, cfg.image // 4))
        heat = heat.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            x = images.to(torch.bfloat16, memory_format=torch.channels_last).div_(255.0)
            logits = model(x).float()
        loss = F.binary_cross_entropy_with_logits(logits, heat)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.detach()
        if step % 50 == 49:
            print(f"step {step + 1}: mean loss {running.item() / (step + 1):.4f}")
    print(f"final mean loss {running.item() / cfg.steps:.4f}")


if __name__ == "__main__":
    main()
