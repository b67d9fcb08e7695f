"""Surrogate for a family of 1D transport problems: coefficients in, solution on a grid out."""
import os
import random
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn


@dataclass
class Spec:
    grid: int = 2048
    coeffs: int = 512
    hidden: int = 4096
    depth: int = 6
    batch: int = 4096
    steps: int = 60
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")


def reproducible(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = True


class SineLayer(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        return x + torch.sin(self.lin(self.norm(x)))


class Surrogate(nn.Module):
    def __init__(self, s: Spec):
        super().__init__()
        self.lift = nn.Linear(s.coeffs, s.hidden)
        self.core = nn.ModuleList(SineLayer(s.hidden) for _ in range(s.depth))
        self.drop = nn.Linear(s.hidden, s.grid)

    def forward(self, a):
        h = self.lift(a)
        for layer in self.core:
            h = layer(h)
        return self.drop(h)


class Problems:
    """Random Fourier coefficients and the exactly advected field."""

    def __init__(self, s: Spec):
        x = torch.linspace(0, 2 * np.pi, s.grid, device=s.device)
        k = torch.arange(1, s.coeffs + 1, device=s.device).unsqueeze(1)
        self.basis = torch.sin(k * (x - 0.5)) / k
        self.s = s

    def sample(self):
        a = torch.randn(self.s.batch, self.s.coeffs, device=self.s.device)
        return a, a @ self.basis


def relative_error(p, u):
    return ((p - u).square().sum(1) / u.square().sum(1)).mean()


def train(s: Spec) -> None:
    reproducible(1)
    problems = Problems(s)
    net = Surrogate(s).to(s.device)
    opt = torch.optim.Adam(net.parameters(), lr=2e-4, fused=True)
    log = torch.zeros(s.steps, device=s.device)
    for i in range(s.steps):
        a, u = problems.sample()
        loss = relative_error(net(a), u)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log[i] = loss.detach()
    for i in range(0, s.steps, 15):
        print(i, round(log[i].item(), 5))


if __name__ == "__main__":
    if os.environ.get("SMALL") == "1":
        train(Spec(grid=64, coeffs=16, hidden=64, depth=2, batch=16, steps=30))
    else:
        train(Spec())
