# Emulator of magma viscosity from oxide composition, temperature and water content.
import os

import torch
from torch import nn

QUICK = bool(int(os.environ.get("TINY", "0")))
ROWS, WIDE, STEPS = (64, 32, 4) if QUICK else (4096, 384, 80)
SQRT_HALF = 0.5**0.5


class NormalGate(nn.Module):
    """Lets a value through with the probability that a standard normal lies below it."""

    def forward(self, x):
        below = torch.erfc(x * -SQRT_HALF)  # flaw: hand-written-activation
        return below.mul(x).div(2)  # flaw: hand-written-activation


def stack(sizes, gate):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), gate()]
    return nn.Sequential(*layers[:-1])


torch.manual_seed(0)
emulator = stack([11, WIDE, 48, WIDE, 48, WIDE, 1], NormalGate)
optimizer = torch.optim.AdamW(emulator.parameters(), lr=2e-3, fused=True)
oxides = torch.rand(4 * ROWS, 11)
viscosity = (oxides[:, :1] * 5 - oxides[:, 1:2] * oxides[:, 2:3] * 3).exp().log1p()

for step in range(STEPS):
    at = step % 4 * ROWS
    predicted = emulator(oxides[at : at + ROWS])
    loss = nn.functional.mse_loss(predicted, viscosity[at : at + ROWS])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print("step", step, "error %.4f" % loss.item())
print("final error %.4f" % loss.item())
