"""Fine-grained leaf classification: few images, many epochs."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    images: int = 768
    size: int = 192
    classes: int = 100
    width: int = 96
    batch: int = 64
    epochs: int = 16
    workers: int = 10
    lr: float = 0.05

    def __post_init__(self):
        if self.device == "cpu":
            self.images, self.size, self.width, self.batch, self.epochs, self.workers = 8, 32, 8, 4, 2, 1


class Leaves(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(1)
        self.images = rng.integers(0, 255, (cfg.images, cfg.size, cfg.size, 3), dtype=np.uint8)
        self.labels = rng.integers(0, cfg.classes, cfg.images)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        if torch.rand(()) < 0.5:
            image = image[:, ::-1]
        dy, dx = torch.randint(-12, 13, (2,)).tolist()
        image = np.roll(image, (dy, dx), axis=(0, 1))
        return torch.from_numpy(image.transpose(2, 0, 1).copy()), int(self.labels[i])


class Bottleneck(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, 1, 1, bias=False),
            nn.BatchNorm2d(cout),
        )
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if (cin, stride) != (cout, 1) else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x), inplace=True)


def build(cfg):
    w = cfg.width
    layers = [nn.Conv2d(3, w, 3, 2, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True)]
    for cin, cout, stride in [(w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1)]:
        layers.append(Bottleneck(cin, cout, stride))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * w, cfg.classes)]
    return nn.Sequential(*layers).to(cfg.device, memory_format=torch.channels_last)


def run(cfg):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    cuda = cfg.device == "cuda"
    loader = DataLoader(  # flaw: loader-workers-restart
        Leaves(cfg),
        batch_size=cfg.batch,
        shuffle=True,
        drop_last=True,
        num_workers=cfg.workers,  # flaw: loader-workers-restart
        pin_memory=cuda,
    )
    model = build(cfg)
    optimizer = torch.optim.SGD(model.parameters(), cfg.lr, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    for epoch in range(cfg.epochs):
        hits = torch.zeros((), device=cfg.device)
        for images, labels in loader:
            images = images.to(cfg.device, non_blocking=True)
            labels = labels.to(cfg.device, non_blocking=True)
            images = images.to(torch.bfloat16).div_(255).contiguous(memory_format=torch.channels_last)
            with torch.autocast(cfg.device, dtype=torch.bfloat16):
                logits = model(images)
                loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            hits += (logits.detach().argmax(1) == labels).sum()
        schedule.step()
        print(f"[{epoch + 1:3d}/{cfg.epochs}] train accuracy {hits.item() / cfg.images:.3f}")


if __name__ == "__main__":
    run(Config())
