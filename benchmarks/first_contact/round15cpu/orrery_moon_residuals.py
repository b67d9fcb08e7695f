"""Fits the residual light curve of an exomoon with a sine network (coordinates in, brightness out)."""
import os

import numpy as np
import torch
from torch import nn

torch.set_default_dtype(torch.float64)  # flaw: float64-on-device

FAST = os.environ.get("TINY") == "1"
POINTS, WIDTH, STEPS = (128, 32, 4) if FAST else (3072, 256, 120)
rng = np.random.default_rng(21)


def tensor(array):
    return torch.as_tensor(array, dtype=torch.get_default_dtype())


class Sine(nn.Module):
    def __init__(self, inputs, outputs, omega):
        super().__init__()
        bound = (6 / inputs) ** 0.5 / omega
        self.weight = nn.Parameter(tensor(rng.uniform(-bound, bound, (outputs, inputs))))
        self.bias = nn.Parameter(tensor(rng.uniform(-0.1, 0.1, outputs)))
        self.omega = omega

    def forward(self, x):
        return torch.sin(self.omega * nn.functional.linear(x, self.weight, self.bias))


curve = nn.Sequential(Sine(2, WIDTH, 8.0), Sine(WIDTH, WIDTH, 2.0), Sine(WIDTH, WIDTH, 2.0), Sine(WIDTH, 1, 1.0))
optimizer = torch.optim.AdamW(curve.parameters(), lr=1e-4, weight_decay=0.0, fused=True)
phase = rng.uniform(-1, 1, (POINTS, 2))
where = tensor(phase)
bright = tensor(0.3 * np.sin(5 * phase[:, :1]) * np.cos(3 * phase[:, 1:]))

for epoch in range(STEPS):
    loss = nn.functional.mse_loss(curve(where), bright)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        print(epoch, f"{loss.item():.4f}")
print("residual", f"{loss.item():.4f}")
