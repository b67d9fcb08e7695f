# Ocean-surface forecaster: a residual network unrolled over a few hours, trained on the final state.
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
SIZE, WIDTH, HOURS, BATCH, STEPS = (16, 8, 2, 1, 6) if TINY else (48, 24, 4, 3, 90)


class HourStep(nn.Module):
    def __init__(self, fields=4):
        super().__init__()
        self.enter = nn.Conv2d(fields + 1, WIDTH, 3, padding=1)
        self.middle = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.leave = nn.Conv2d(WIDTH, fields, 3, padding=1)

    def forward(self, state, wind):
        h = F.silu(self.enter(torch.cat([state, wind], 1)))
        h = h + F.silu(self.middle(h))
        return state + 0.1 * self.leave(h)


torch.manual_seed(14)
channels_last = torch.channels_last
step_hour = HourStep().to(memory_format=channels_last)
optimizer = torch.optim.AdamW(step_hour.parameters(), lr=1e-3, fused=True)
starts = [torch.randn(BATCH, 4, SIZE, SIZE).to(memory_format=channels_last) for _ in range(4)]
winds = [[torch.randn(BATCH, 1, SIZE, SIZE).to(memory_format=channels_last) for _ in range(HOURS)] for _ in range(4)]

began = time.perf_counter()
for n in range(STEPS):
    state = starts[n % 4]
    target = 0.8 * torch.roll(state, 1, -1)
    for wind in winds[n % 4]:
        state = step_hour(state, wind)
    loss = F.mse_loss(state, target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"{(time.perf_counter() - began) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
print(f"forecast loss {loss.item():.5f}")
