"""MLP-Mixer on windows of turbine sensors, remaining useful life as the target."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class MixerConfig:
    sensors: int = 14
    window: int = 96
    width: int = 48
    blocks: int = 3
    batch: int = 96
    iterations: int = 150
    peak_lr: float = 2e-3


class Norm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class MixerBlock(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm_time = Norm(cfg.width)
        self.time = nn.Sequential(
            nn.Linear(cfg.window, cfg.window // 2), nn.ReLU(), nn.Linear(cfg.window // 2, cfg.window)
        )
        self.norm_width = Norm(cfg.width)
        self.channel = nn.Sequential(
            nn.Linear(cfg.width, cfg.width), nn.ReLU(), nn.Linear(cfg.width, cfg.width)
        )

    def forward(self, x):
        x = x + self.time(self.norm_time(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.norm_width(x))


class Mixer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(cfg.sensors, cfg.width)
        self.blocks = nn.Sequential(*[MixerBlock(cfg) for _ in range(cfg.blocks)])
        self.norm = Norm(cfg.width)
        self.head = nn.Linear(cfg.width, 1)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.embed(x))).mean(1)).squeeze(1)


def fleet(cfg, engines=60, cycles=300):
    wear = torch.linspace(0, 1, cycles).pow(2)[None, :, None] * torch.rand(engines, 1, 1)
    sensors = wear * torch.randn(1, 1, cfg.sensors) + 0.05 * torch.randn(engines, cycles, cfg.sensors)
    windows = sensors.unfold(1, cfg.window, 4).transpose(2, 3).flatten(0, 1).contiguous()
    left = torch.arange(cycles - cfg.window, -1, -4).repeat(engines) / 100.0
    return windows, left


def main(cfg=MixerConfig()):
    torch.manual_seed(0)
    windows, left = fleet(cfg)
    model = Mixer(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.peak_lr, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: 0.5 * (1 + math.cos(math.pi * i / cfg.iterations))
    )
    for i in range(cfg.iterations):
        pick = torch.randint(len(windows), (cfg.batch,))
        loss = F.huber_loss(model(windows[pick]), left[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if i % 30 == 0:
            print(f"iteration {i} huber {loss.item():.5f}")


if __name__ == "__main__":
    main()
