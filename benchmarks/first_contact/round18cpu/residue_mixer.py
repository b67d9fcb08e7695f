"""Predict per-residue solvent exposure of proteins from precomputed profile features."""
import os
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass
class Settings:
    proteins: int = 4 if TINY else 8
    residues: int = 32 if TINY else 256
    width: int = 32 if TINY else 128
    depth: int = 4
    steps: int = 8 if TINY else 110
    rate: float = 1e-3


def centre_and_scale(x, floor):
    var, mu = torch.var_mean(x, dim=-1, keepdim=True, correction=0)  # flaw: hand-written-norm
    return (x - mu).div(var.add(floor).sqrt())  # flaw: hand-written-norm


class ProfileNorm(nn.Module):
    def __init__(self, width, floor=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.floor = floor

    def forward(self, x):
        return torch.addcmul(self.shift, centre_and_scale(x, self.floor), self.gain)  # flaw: hand-written-norm


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before = ProfileNorm(width)
        self.window = nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.after = ProfileNorm(width)
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        x = x + self.window(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.outer(F.gelu(self.inner(self.after(x))))


class ExposureNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.lift = nn.Linear(30, cfg.width)
        self.body = nn.Sequential(*(Mixer(cfg.width) for _ in range(cfg.depth)))
        self.final = ProfileNorm(cfg.width)
        self.read = nn.Linear(cfg.width, 1)

    def forward(self, profile):
        return self.read(self.final(self.body(self.lift(profile)))).squeeze(-1)


def make_pool(cfg, count=6):
    gen = torch.Generator().manual_seed(3)
    mix = torch.randn(30, generator=gen)
    for _ in range(count):
        profile = torch.randn(cfg.proteins, cfg.residues, 30, generator=gen)
        yield profile, torch.sigmoid(profile @ mix)


def main():
    torch.manual_seed(0)
    cfg = Settings()
    pool = list(make_pool(cfg))
    net = ExposureNet(cfg)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.rate, fused=True)
    start = time.perf_counter()
    for step in range(cfg.steps):
        profile, exposure = pool[step % len(pool)]
        loss = F.mse_loss(net(profile), exposure)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(f"{(time.perf_counter() - start) / cfg.steps * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"exposure error {loss.item():.3f}")


if __name__ == "__main__":
    main()
