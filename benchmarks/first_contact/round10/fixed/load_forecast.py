"""N-BEATS for electricity load: one day ahead from two weeks of hourly history."""

import numpy as np
import torch
import torch.nn as nn

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

HISTORY, HORIZON = (336, 24) if gpu else (24, 4)
METERS = 320 if gpu else 4
HOURS = 6000 if gpu else 200
BLOCKS = 10 if gpu else 2
WIDTH = 1024 if gpu else 16
BATCH = 4096 if gpu else 16
STEPS = 200 if gpu else 6


def read_meters(rng):
    """Daily and weekly cycles with noise, one column per meter."""
    hour = np.arange(HOURS)[:, None]
    phase = rng.uniform(0, 2 * np.pi, METERS)
    daily = np.sin(2 * np.pi * hour / 24 + phase)
    weekly = np.sin(2 * np.pi * hour / 168 + phase / 2)
    load = 3.0 + daily + 0.5 * weekly + 0.2 * rng.standard_normal((HOURS, METERS))
    return (load - load.mean(0)) / load.std(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(HISTORY, WIDTH), nn.ReLU()]
        for _ in range(3):
            layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
        self.stack = nn.Sequential(*layers)
        self.backcast = nn.Linear(WIDTH, HISTORY)
        self.forecast = nn.Linear(WIDTH, HORIZON)

    def forward(self, x):
        h = self.stack(x)
        return self.backcast(h), self.forecast(h)


class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x):
        total = 0.0
        for block in self.blocks:
            back, forecast = block(x)
            x = x - back
            total = total + forecast
        return total


series = torch.from_numpy(read_meters(np.random.default_rng(0))).float().to(device)
model = NBeats().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
window = torch.arange(HISTORY + HORIZON, device=device)

for step in range(STEPS):
    start = torch.randint(HOURS - HISTORY - HORIZON, (BATCH, 1), device=device)
    meter = torch.randint(METERS, (BATCH, 1), device=device)
    sample = series[start + window, meter]
    past, future = sample[:, :HISTORY], sample[:, HISTORY:]
    loss = nn.functional.l1_loss(model(past), future)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: mae {loss.item():.4f}")
print(f"mae {loss.item():.4f}")
