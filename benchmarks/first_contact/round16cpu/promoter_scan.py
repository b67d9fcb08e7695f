"""Promoter strength along DNA windows: a deep dilated residual network."""
import os
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential


class Plan(NamedTuple):
    bases: int = 640
    windows: int = 4
    width: int = 48
    blocks: int = 12
    steps: int = 90


plan = Plan(bases=64, windows=2, blocks=6, steps=6) if os.environ.get("TINY") else Plan()


class Residual(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.conv = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.mix(F.gelu(self.conv(self.norm(x))))


class Tower(nn.Sequential):
    segments = 6

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        return checkpoint_sequential(list(self), self.segments, x, use_reentrant=False)  # flaw: needless-checkpointing


class PromoterNet(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.stem = nn.Conv1d(4, p.width, 9, padding=4)
        self.tower = Tower(*(Residual(p.width, 2 ** (i % 5)) for i in range(p.blocks)))
        self.strength = nn.Conv1d(p.width, 1, 1)

    def forward(self, dna):
        return self.strength(self.tower(self.stem(dna))).squeeze(1)


def genome(p):
    g = torch.Generator().manual_seed(77)
    for _ in range(p.steps):
        letters = torch.randint(4, (p.windows, p.bases), generator=g)
        dna = F.one_hot(letters, 4).transpose(1, 2).float()
        motif = F.avg_pool1d(dna[:, :2].sum(1, keepdim=True), 11, stride=1, padding=5)
        yield dna, motif.squeeze(1) * 2 - 1


def main():
    torch.manual_seed(0)
    net = PromoterNet(plan).train()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for i, (dna, strength) in enumerate(genome(plan)):
        opt.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(dna), strength)
        loss.backward()
        opt.step()
        if i % 30 == 0 or i + 1 == plan.steps:
            print(f"window batch {i:3d}  mse {loss.item():.5f}")


main()
