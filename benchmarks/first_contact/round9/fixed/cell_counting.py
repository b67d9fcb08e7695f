# Count cells in microscopy fields: a density map is regressed and its sum is the count.
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


@dataclass
class Config:
    fields: int = 256 if CUDA else 8
    size: int = 256 if CUDA else 32
    batch: int = 32 if CUDA else 4
    epochs: int = 20 if CUDA else 2
    channels: int = 64 if CUDA else 8
    workers: int = 8 if CUDA else 1
    learning_rate: float = 1e-4


class Fields(Dataset):
    def __init__(self, cfg: Config):
        rng = np.random.default_rng(7)
        self.cfg = cfg
        self.images = rng.integers(0, 256, (cfg.fields, cfg.size, cfg.size), dtype=np.uint8)
        self.cells = [rng.integers(0, cfg.size // 4, (int(rng.integers(20, 90)), 2)) for _ in range(cfg.fields)]

    def __len__(self):
        return self.cfg.fields

    def __getitem__(self, index):
        image = self.images[index]
        density = np.zeros((self.cfg.size // 4, self.cfg.size // 4), dtype=np.float32)
        np.add.at(density, tuple(self.cells[index].T), 1.0)
        if torch.rand(()) < 0.5:
            image, density = image[::-1], density[::-1]
        return torch.from_numpy(image.copy())[None], torch.from_numpy(density.copy())[None]


class DensityNet(nn.Module):
    def __init__(self, width):
        super().__init__()

        def block(cin, cout, stride=1, dilation=1):
            return nn.Sequential(
                nn.Conv2d(cin, cout, 3, stride, dilation, dilation, bias=False),
                nn.BatchNorm2d(cout),
                nn.ReLU(inplace=True),
            )

        self.front = nn.Sequential(
            block(1, width, 2), block(width, width), block(width, 2 * width, 2), block(2 * width, 4 * width), block(4 * width, 4 * width)
        )
        self.back = nn.Sequential(*[block(4 * width, 4 * width, dilation=2) for _ in range(4)])
        self.head = nn.Conv2d(4 * width, 1, 1)

    def forward(self, x):
        return self.head(self.back(self.front(x)))


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.device = torch.device("cuda" if CUDA else "cpu")
        self.loader = self.make_loader(Fields(cfg))
        self.model = DensityNet(cfg.channels).to(self.device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), cfg.learning_rate, fused=CUDA)

    def make_loader(self, fields):
        options = dict(num_workers=self.cfg.workers, pin_memory=CUDA, persistent_workers=True)
        return DataLoader(fields, batch_size=self.cfg.batch, shuffle=True, drop_last=True, **options)

    def step(self, images, density):
        images = images.to(self.device, non_blocking=True).float().div_(255)
        density = density.to(self.device, non_blocking=True)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            predicted = self.model(images.to(memory_format=torch.channels_last))
        loss = nn.functional.mse_loss(predicted.float(), density)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            started = time.perf_counter()
            losses = [self.step(images, density) for images, density in self.loader]
            mean = torch.stack(losses).mean().item()
            print(f"epoch {epoch:2d}  mse {mean:.4f}  {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    Trainer(Config()).fit()
