"""Forecasts tides at lighthouses with an LSTM; keeps an average of the weights."""
import argparse
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

GAUGES = 24


class Forecaster(nn.Module):
    def __init__(self, width=192, ahead=8):
        super().__init__()
        self.reader = nn.LSTM(GAUGES, width, batch_first=True)
        self.head = nn.Linear(width, GAUGES * ahead)

    def forward(self, past):
        _, (last, _) = self.reader(past)
        return self.head(last[0])


class Average:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.mine, self.theirs = list(self.model.parameters()), list(model.parameters())
        self.decay = decay

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(self.mine, self.theirs, 1 - self.decay)


def tide_table(hours, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(hours)[:, None] / 24
    phase = 6.28 * torch.rand(3, GAUGES, generator=g)
    size = 0.3 + torch.rand(3, GAUGES, generator=g)
    waves = [s * torch.sin(2 * math.pi * t * f + p) for f, s, p in zip((1.93, 1.0, 0.07), size, phase)]
    return torch.stack(waves).sum(0) + 0.1 * torch.randn(hours, GAUGES, generator=g)


class Windows:
    """All windows of the table as one view; a batch is one look-up."""

    def __init__(self, table, past, ahead, generator):
        self.view = table.unfold(0, past + ahead, 1).transpose(1, 2)
        self.past, self.generator = past, generator

    def draw(self, rows):
        picked = self.view[torch.randint(len(self.view), (rows,), generator=self.generator)]
        return picked[:, : self.past], picked[:, self.past :].flatten(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=1200)
    p.add_argument("--rows", type=int, default=64)
    p.add_argument("--past", type=int, default=24)
    p.add_argument("--ahead", type=int, default=8)
    a = p.parse_args()
    torch.manual_seed(0)
    windows = Windows(tide_table(20_000, 1), a.past, a.ahead, torch.Generator().manual_seed(2))
    model = Forecaster(ahead=a.ahead)
    average = Average(model, 0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    error = torch.zeros(())
    for step in range(1, a.steps + 1):
        past, future = windows.draw(a.rows)
        loss = F.smooth_l1_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.follow()
        error += loss.detach()
        if step % 120 == 0:
            print(f"step {step:4d}  error {error.item() / 120:.5f}", flush=True)
            error.zero_()
    with torch.inference_mode():
        past, future = windows.draw(1024)
        print(f"averaged weights: {F.l1_loss(average.model(past), future).item():.4f} m")


if __name__ == "__main__":
    main()
