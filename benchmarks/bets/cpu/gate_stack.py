"""Gated feed-forward layers with the tanh form of GELU, AdamW over a list of small towers."""

import math

import torch
from torch import nn

torch.manual_seed(19)
torch.set_num_threads(1)


def activate(v):
    inner = math.sqrt(2.0 / math.pi) * (v + 0.044715 * v**3)
    return 0.5 * v * (1.0 + torch.tanh(inner))


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(32, 128), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x):
        h = self.a(x)
        h = activate(h)
        return x + self.c(h * self.b(x))


towers = nn.ModuleList([nn.Sequential(*[Gate() for _ in range(3)]) for _ in range(4)])
optimizer = torch.optim.AdamW(towers.parameters(), lr=1e-3)
for step in range(3000):
    x = torch.randn(256, 32)
    loss = sum(tower(x).square().mean() for tower in towers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
