import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    bands: int = 12
    classes: int = 10
    width: int = 96
    blocks: int = 8
    tile: int = 128
    batch: int = 32
    steps: int = 100

    @classmethod
    def from_env(cls):
        if os.environ.get("SMALL") == "1":
            return cls(width=8, blocks=2, tile=24, batch=2, steps=30)
        return cls()


class ConvUnit(nn.Module):
    def __init__(self, cin, cout, kernel=3, dilation=1):
        super().__init__()
        pad = dilation * (kernel // 2)
        self.conv = nn.Conv2d(cin, cout, kernel, padding=pad, dilation=dilation)  # flaw: conv-bias-before-norm
        self.norm = nn.BatchNorm2d(cout)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class LandCoverNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.stem = ConvUnit(cfg.bands, cfg.width)
        self.body = nn.Sequential(*[ConvUnit(cfg.width, cfg.width, 1 if i % 2 else 3) for i in range(cfg.blocks)])
        self.classify = nn.Conv2d(cfg.width, cfg.classes, 1)

    def forward(self, x):
        return self.classify(self.body(self.stem(x)))


def train(cfg: Config) -> float:
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    g = torch.Generator(device=dev).manual_seed(7)
    tiles = torch.rand(cfg.batch * 3, cfg.bands, cfg.tile, cfg.tile, device=dev, generator=g)
    tiles = tiles.contiguous(memory_format=torch.channels_last)
    truth = torch.randint(0, cfg.classes, (cfg.batch * 3, cfg.tile, cfg.tile), device=dev, generator=g)
    model = LandCoverNet(cfg).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    last = None
    for step in range(cfg.steps):
        lo = (step % 3) * cfg.batch
        with torch.autocast(dev, dtype=torch.bfloat16):
            scores = model(tiles[lo : lo + cfg.batch])
            last = F.cross_entropy(scores, truth[lo : lo + cfg.batch])
        opt.zero_grad()
        last.backward()
        opt.step()
    return float(last)


if __name__ == "__main__":
    print("final loss", train(Config.from_env()))
