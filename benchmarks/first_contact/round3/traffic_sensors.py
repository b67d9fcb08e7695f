"""Sequence-to-sequence forecasts for traffic sensors with an enterprise-style metric collector."""
from __future__ import annotations

import logging
import os
from typing import Dict, List

import torch
from torch import Tensor, nn
from torch.nn import functional as F

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("traffic")


class MetricCollector:
    """Collects named metrics during an epoch and summarises them at its end."""

    def __init__(self) -> None:
        self._values: Dict[str, List[Tensor]] = {}

    def record(self, name: str, value: Tensor) -> None:
        self._values.setdefault(name, []).append(value)  # flaw: graph-kept-alive

    def summary(self) -> Dict[str, float]:
        return {name: float(torch.stack(values).mean()) for name, values in self._values.items()}


class MixerBlock(nn.Module):
    def __init__(self, steps: int, channels: int) -> None:
        super().__init__()
        self.time_norm = nn.LayerNorm(steps)
        self.time = nn.Sequential(nn.Linear(steps, steps), nn.GELU(), nn.Linear(steps, steps))
        self.channel_norm = nn.LayerNorm(channels)
        self.channel = nn.Sequential(nn.Linear(channels, 2 * channels), nn.GELU(), nn.Linear(2 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.time(self.time_norm(x.transpose(1, 2))).transpose(1, 2)
        return x + self.channel(self.channel_norm(x))


class TrafficModel(nn.Module):
    def __init__(self, sensors: int, past: int, future: int, channels: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Linear(sensors, channels)
        self.blocks = nn.Sequential(*[MixerBlock(past, channels) for _ in range(depth)])
        self.horizon = nn.Linear(past, future)
        self.project = nn.Linear(channels, sensors)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.blocks(self.embed(x))
        return self.project(self.horizon(hidden.transpose(1, 2)).transpose(1, 2))


def relative_error(forecast: Tensor, truth: Tensor) -> Tensor:
    return ((forecast - truth) / (truth.abs() + 1.0)).abs().mean()


def run(sensors: int, past: int, future: int, channels: int, depth: int, batch: int, steps: int) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    flow = torch.rand(6, batch, past + future, sensors, device=device)
    model = TrafficModel(sensors, past, future, channels, depth).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    metrics = MetricCollector()
    for step in range(steps):
        window = flow[step % 6]
        past_values, truth = window[:, :past], window[:, past:]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            forecast = model(past_values).float()
        loss = F.huber_loss(forecast, truth)
        error = relative_error(forecast, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.record("loss", loss.detach())
        metrics.record("relative error", error)
    for name, value in metrics.summary().items():
        log.info("%s: %.4f", name, value)


if __name__ == "__main__":
    if os.environ.get("SMALL") == "1":
        run(8, 16, 8, 16, 1, 4, 30)
    else:
        run(512, 256, 128, 512, 6, 64, 60)
