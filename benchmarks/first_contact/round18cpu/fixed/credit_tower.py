"""Default-risk model: a very deep, narrow residual tower over tabular loan features."""
import os
import sys
import time

import torch
from torch import nn

TINY = bool(int(os.environ.get("TINY", "0")))
BLOCKS = 6 if TINY else 70
ROWS = 64 if TINY else 256
STEPS = 8 if TINY else 150


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
adam = torch.optim.AdamW(tower.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.01, fused=True)
book = list(loans(8))
criterion = nn.BCEWithLogitsLoss()
clock = time.perf_counter()
for step in range(STEPS):
    x, y = book[step % 8]
    loss = criterion(tower(x).squeeze(1), y)
    adam.zero_grad(set_to_none=True)
    loss.backward()
    adam.step()
print(f"{(time.perf_counter() - clock) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
print(f"risk loss {loss.item():.3f}")
