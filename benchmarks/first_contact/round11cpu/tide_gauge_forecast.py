"""Forecast the next six hours of water level from a week of tide-gauge readings.

Readings live in an archive of fixed-size blocks; a block is fetched from slow storage when it is asked for.
"""

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class GaugeSpec:
    history: int = 168
    horizon: int = 6
    channels: int = 4
    fetch_seconds: float = 0.0002


class BlockStore:
    """Stands for the object store of the harbour authority: a read has a latency and little else."""

    def __init__(self, n_hours: int, spec: GaugeSpec, seed: int):
        rng = np.random.default_rng(seed)
        hours = np.arange(n_hours)
        tide = np.sin(2 * math.pi * hours / 12.42) + 0.4 * np.sin(2 * math.pi * hours / 25.82)
        surge = np.cumsum(rng.normal(0, 0.02, n_hours))
        surge -= np.linspace(surge[0], surge[-1], n_hours)
        wind = rng.normal(0, 1, n_hours)
        pressure = np.cos(2 * math.pi * hours / 400.0) + 0.1 * rng.normal(0, 1, n_hours)
        self.table = np.stack([tide + surge, surge, wind, pressure], axis=1).astype(np.float32)
        self.latency = spec.fetch_seconds

    def read(self, start: int, stop: int) -> np.ndarray:
        time.sleep(self.latency)
        return self.table[start:stop]


class GaugeWindows(Dataset):
    def __init__(self, store: BlockStore, spec: GaugeSpec, count: int):
        self.store = store
        self.spec = spec
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        spec = self.spec
        block = self.store.read(index, index + spec.history + spec.horizon)
        past = torch.from_numpy(block[: spec.history])
        ahead = torch.from_numpy(block[spec.history :, 0])
        return past, ahead


class LevelForecaster(nn.Module):
    def __init__(self, spec: GaugeSpec, width: int = 128):
        super().__init__()
        self.embed = nn.Conv1d(spec.channels, width, kernel_size=6, stride=3)
        self.mix = nn.ModuleList([nn.Conv1d(width, width, 3, dilation=d, padding=d) for d in (1, 2, 4)])
        self.out = nn.Linear(width, spec.horizon)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.embed(past.transpose(1, 2)))
        for conv in self.mix:
            h = h + torch.relu(conv(h))
        return self.out(h[..., -1])


def build_loader(spec: GaugeSpec, count: int, batch: int, seed: int) -> DataLoader:
    store = BlockStore(count + spec.history + spec.horizon, spec, seed)
    return DataLoader(
        GaugeWindows(store, spec, count),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=0,  # flaw: loader-without-workers
    )


def fit(args: argparse.Namespace) -> None:
    spec = GaugeSpec()
    loader = build_loader(spec, args.windows, args.batch, args.seed)
    model = LevelForecaster(spec)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    running = 0.0
    for step, (past, ahead) in enumerate(loader):
        loss = nn.functional.mse_loss(model(past), ahead)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if (step + 1) % args.report == 0:
            print(f"batch {step + 1:5d}  mse {running / args.report:.5f}")
            running = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=16_000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--report", type=int, default=125)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    fit(args)


if __name__ == "__main__":
    main()
