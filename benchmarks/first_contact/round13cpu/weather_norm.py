"""Nowcasting on station tokens: gated residual blocks around a normalisation, trained with a cosine schedule."""
from __future__ import annotations

import torch
from torch import Tensor, nn


class BaseNorm(nn.Module):
    eps = 1e-5

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))


class StationNorm(BaseNorm):
    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)  # flaw: hand-written-norm
        var = (x - mean).pow(2).mean(-1, keepdim=True)  # flaw: hand-written-norm
        return (x - mean) / torch.sqrt(var + self.eps) * self.weight + self.bias  # flaw: hand-written-norm


class GatedBlock(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.pre = StationNorm(dim)
        self.inner = nn.Linear(dim, 2 * dim)
        self.post = StationNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.post(nn.functional.glu(self.inner(self.pre(x)), dim=-1))


class Nowcast(nn.Module):
    def __init__(self, sensors: int = 9, dim: int = 64, depth: int = 4):
        super().__init__()
        self.embed = nn.Linear(sensors, dim)
        self.blocks = nn.ModuleList([GatedBlock(dim) for _ in range(depth)])
        self.final = StationNorm(dim)
        self.head = nn.Linear(dim, sensors)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.final(h))


def weather(batch: int, stations: int, drift: Tensor) -> tuple[Tensor, Tensor]:
    now = torch.randn(batch, stations, drift.shape[0])
    return now, torch.tanh(now @ drift)


def run(steps: int = 620, batch: int = 32, stations: int = 96) -> float:
    torch.manual_seed(21)
    drift = torch.randn(9, 9) / 3
    model = Nowcast()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    total = torch.zeros(())
    for _ in range(steps):
        now, later = weather(batch, stations, drift)
        loss = nn.functional.mse_loss(model(now), later)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        total += loss.detach()
    return float(total) / steps


if __name__ == "__main__":
    print("mean mse", round(run(), 4))
