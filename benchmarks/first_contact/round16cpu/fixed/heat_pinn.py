"""A deep, narrow network learns the temperature field of a rod."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") is not None
BLOCKS = 4 if TINY else 48
POINTS = 64 if TINY else 256
STEPS = 6 if TINY else 200


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lift = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.lift(self.norm(x)))


class Rod(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.read = nn.Linear(2, width)
        self.deep = nn.Sequential(*(Block(width) for _ in range(BLOCKS)))
        self.heat = nn.Linear(width, 1)

    def forward(self, where):
        return self.heat(self.deep(self.read(where)))


def measured(where):
    place, time = where[:, :1], where[:, 1:]
    return torch.sin(3.1416 * place) * torch.exp(-time) + 0.3 * torch.sin(9.4248 * place) * torch.exp(-9 * time)


def main():
    torch.manual_seed(0)
    rod = Rod()
    opt = torch.optim.AdamW(rod.parameters(), lr=5e-4, weight_decay=0.01, fused=True)
    for step in range(STEPS):
        where = torch.rand(POINTS, 2)
        loss = F.mse_loss(rod(where), measured(where))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % (STEPS // 2) == 0:
            print(f"{step + 1:4d}  {loss.item():.4f}")


main()
