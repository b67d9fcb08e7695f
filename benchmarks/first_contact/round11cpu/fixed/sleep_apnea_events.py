"""Detects apnea events in airflow traces with a stack of residual MLP-over-time blocks.

Usage: python sleep_apnea_events.py [--blocks 3] [--epochs 11]
"""

import argparse

import torch
from torch import nn


class SmoothRamp(nn.Module):
    """The activation of the wearable's firmware; the weights are exported to it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(x, approximate="tanh")


class TraceBlock(nn.Module):
    def __init__(self, width: int, expand: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.neighbours = nn.Conv1d(width, width, 9, padding=4, groups=width)
        self.up = nn.Linear(width, expand * width)
        self.ramp = SmoothRamp()
        self.down = nn.Linear(expand * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        y = self.neighbours(y.transpose(1, 2)).transpose(1, 2)
        return x + self.down(self.ramp(self.up(y)))


class ApneaDetector(nn.Module):
    def __init__(self, blocks: int, width: int = 48, patch: int = 8):
        super().__init__()
        self.patch = patch
        self.lift = nn.Linear(patch, width)
        self.blocks = nn.Sequential(*[TraceBlock(width, expand=3) for _ in range(blocks)])
        self.event = nn.Linear(width, 1)

    def forward(self, airflow: torch.Tensor) -> torch.Tensor:
        x = self.lift(airflow.unflatten(1, (-1, self.patch)))
        return self.event(self.blocks(x)).squeeze(-1)


def night_of_breathing(patients: int, samples: int, patch: int, seed: int):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(samples) / 8.0
    rate = 0.2 + 0.1 * torch.rand(patients, 1, generator=gen)
    flow = torch.sin(2 * torch.pi * rate * t)
    onset = torch.randint(0, samples - 160, (patients, 1), generator=gen)
    length = torch.randint(80, 160, (patients, 1), generator=gen)
    index = torch.arange(samples)
    event = (index >= onset) & (index < onset + length)
    flow = torch.where(event, 0.15 * flow, flow) + 0.1 * torch.randn(patients, samples, generator=gen)
    return flow, event.float().unflatten(1, (-1, patch)).mean(-1)


class EarlyReport:
    """Callback that prints a line each time the smoothed loss falls by a tenth."""

    def __init__(self):
        self.smooth = self.best = None

    def __call__(self, step: int, loss: float) -> None:
        self.smooth = loss if self.smooth is None else 0.95 * self.smooth + 0.05 * loss
        if self.best is None or self.smooth < 0.8 * self.best:
            self.best = self.smooth
            print(f"step {step:4d}: loss {self.smooth:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=11)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(12)
    flow, events = night_of_breathing(patients=640, samples=960, patch=8, seed=3)
    model = ApneaDetector(args.blocks)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    callbacks = [EarlyReport()]
    for step in range(args.epochs * len(flow) // args.batch):
        rows = torch.randint(len(flow), (args.batch,))
        loss = nn.functional.binary_cross_entropy_with_logits(model(flow[rows]), events[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for callback in callbacks:
            callback(step, loss.item())
    print(f"final loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
