# Fits a coordinate network to a synthetic elevation map.
import os
import sys
import time

import numpy as np
import torch
from torch import nn

small = os.environ.get("TINY") == "1"
side = 32 if small else 512
steps = 5 if small else 120

yy, xx = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side), indexing="ij")
height = np.sin(5 * xx) * np.cos(4 * yy) + 0.3 * np.sin(17 * xx * yy)

places = torch.tensor(np.stack((xx, yy), -1).reshape(-1, 2), dtype=torch.float32)
heights = torch.tensor(height.reshape(-1, 1), dtype=torch.float32)


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


torch.manual_seed(0)
field = nn.Sequential(nn.Linear(2, 192), Sine(), nn.Linear(192, 192), Sine(), nn.Linear(192, 1))
with torch.no_grad():
    field[0].weight.mul_(12)
field = field.to(places)
opt = torch.optim.Adam(field.parameters(), lr=2e-3, fused=True)
gen = torch.Generator().manual_seed(1)
begin = time.perf_counter()
for step in range(steps):
    rows = torch.randint(len(places), (64 if small else 8192,), generator=gen)
    loss = nn.functional.mse_loss(field(places[rows]), heights[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{(time.perf_counter() - begin) / steps * 1e3:.1f} ms", file=sys.stderr)
print(f"error {loss.item():.2f}")
