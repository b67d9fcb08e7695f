"""Default-risk model: a very deep, narrow residual tower over tabular loan features."""
import math
import os
import sys
import time

import torch
from torch import nn

TINY = bool(int(os.environ.get("TINY", "0")))
BLOCKS = 6 if TINY else 70
ROWS = 64 if TINY else 256
STEPS = 8 if TINY else 150


class DecoupledAdam:
    """Adam with decoupled decay; state sits next to the weights."""

    def __init__(self, weights, rate, betas=(0.9, 0.99), eps=1e-8, decay=0.01):
        self.weights = list(weights)
        self.rate, self.betas, self.eps, self.decay = rate, betas, eps, decay
        self.first = [torch.zeros_like(w) for w in self.weights]
        self.second = [torch.zeros_like(w) for w in self.weights]
        self.count = 0

    def clear(self):
        for w in self.weights:
            w.grad = None

    @torch.no_grad()
    def apply(self):
        self.count += 1
        b1, b2 = self.betas
        size = self.rate / (1 - b1**self.count)
        root = math.sqrt(1 - b2**self.count)
        for i, w in enumerate(self.weights):  # flaw: parameter-loop
            g = w.grad  # flaw: parameter-loop
            w.mul_(1 - self.rate * self.decay)  # flaw: parameter-loop
            self.first[i].lerp_(g, 1 - b1)  # flaw: parameter-loop
            self.second[i].mul_(b2).addcmul_(g, g, value=1 - b2)  # flaw: parameter-loop
            bottom = (self.second[i].sqrt() / root).add_(self.eps)  # flaw: parameter-loop
            w.addcdiv_(self.first[i], bottom, value=-size)  # flaw: parameter-loop


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.squeeze = nn.Linear(width, width // 2)
        self.expand = nn.Linear(width // 2, width)

    def forward(self, x):
        return x + self.expand(torch.relu(self.squeeze(self.norm(x))))


def loans(count):
    gen = torch.Generator().manual_seed(5)
    for _ in range(count):
        x = torch.randn(ROWS, 40, generator=gen)
        yield x, (x[:, :3].sum(1) > 0).float()


torch.manual_seed(2)
tower = nn.Sequential(nn.Linear(40, 32), *[Residual(32) for _ in range(BLOCKS)], nn.Linear(32, 1))
adam = DecoupledAdam(tower.parameters(), rate=1e-3)
book = list(loans(8))
criterion = nn.BCEWithLogitsLoss()
clock = time.perf_counter()
for step in range(STEPS):
    x, y = book[step % 8]
    loss = criterion(tower(x).squeeze(1), y)
    adam.clear()
    loss.backward()
    adam.apply()
print(f"{(time.perf_counter() - clock) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
print(f"risk loss {loss.item():.3f}")
