"""Learns the permeability of a medium from its pressure field."""

import os

import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
SMALL = os.environ.get("SMALL") not in (None, "", "0")
device = torch.device("cuda" if CUDA else "cpu")


def clean(h):
    return torch.nan_to_num(h)


class Unit(nn.Module):
    def __init__(self, dim, expand=2):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * expand * dim)
        self.down = nn.Linear(expand * dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, -1)
        h = a * torch.tanh(F.softplus(b)) + torch.sin(a) * 0.1
        return x + self.scale * self.down(clean(h))


class Inverter(nn.Module):
    def __init__(self, dim, depth, sensors):
        super().__init__()
        self.inp = nn.Linear(sensors, dim)
        self.units = nn.ModuleList([Unit(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, sensors)

    def forward(self, p):
        h = self.inp(p)
        for unit in self.units:
            h = unit(h)
        return self.out(h)


def simulate(batch, sensors):
    k = torch.exp(torch.randn(batch, sensors, device=device))
    flow = torch.cumsum(1 / k, -1)
    return flow / flow[:, -1:], torch.log(k)


def fit(batch, dim, depth, sensors, steps):
    model = Inverter(dim, depth, sensors).to(device)
    forward = torch.compile(model, backend="inductor" if CUDA else "eager")
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    pairs = [simulate(batch, sensors) for _ in range(4)]
    mean = torch.zeros((), device=device)
    for step in range(steps):
        pressure, goal = pairs[step % 4]
        with torch.autocast(device.type, torch.bfloat16):
            guess = forward(pressure)
        loss = F.mse_loss(guess.float(), goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean += loss.detach()
        if step % 75 == 74:
            print(step + 1, mean.item() / (step + 1))
    return mean / steps


if __name__ == "__main__":
    torch.manual_seed(0)
    size = (4, 16, 2, 16, 30) if SMALL else (16384, 384, 6, 128, 150)
    print("final", fit(*size).item())
