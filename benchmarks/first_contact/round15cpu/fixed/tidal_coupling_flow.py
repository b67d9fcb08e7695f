"""Normalising flow of many narrow couplings for tide-gauge residuals."""
import os
import torch
from torch import nn

tiny = "TINY" in os.environ
LINKS = 6 if tiny else 110
ROUNDS = 4 if tiny else 220


class Coupling(nn.Module):
    def __init__(self, size, flip):
        super().__init__()
        self.flip = flip
        self.inner = nn.Linear(size // 2, 16)
        self.outer = nn.Linear(16, size)
        nn.init.zeros_(self.outer.weight)

    def forward(self, z):
        a, b = z.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        scale, move = self.outer(self.inner(a).tanh()).chunk(2, dim=1)
        scale = scale.tanh()
        b = b * scale.exp() + move
        return torch.cat((b, a) if self.flip else (a, b), dim=1), scale.sum(1)


class Flow(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.links = nn.ModuleList(Coupling(size, k % 2 == 1) for k in range(LINKS))

    def forward(self, z):
        stretch = 0.0
        for link in self.links:
            z, s = link(z)
            stretch = stretch + s
        return z, stretch


def residuals(rows=64, size=8):
    base = torch.randn(rows, size)
    return base.cumsum(1) * 0.5 + 0.1 * base.square()


torch.manual_seed(21)
flow = Flow(8)
tuner = torch.optim.Adam(flow.parameters(), lr=5e-4, fused=True)
for k in range(ROUNDS):
    z, stretch = flow(residuals())
    nats = (0.5 * z.square().sum(1) - stretch).mean()
    nats.backward()
    tuner.step()
    tuner.zero_grad(set_to_none=True)
    if k % 30 == 0:
        print(k, f"{nats.item():.3f}")
print("nats", f"{nats.item():.3f}")
