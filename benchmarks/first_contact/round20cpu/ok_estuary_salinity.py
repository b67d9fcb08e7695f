# Salinity of an estuary, six hours ahead, from tide, discharge and wind. GRU on sliding windows.
from typing import Iterator, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class Batch(NamedTuple):
    past: Tensor
    future: Tensor


class Settings(NamedTuple):
    hours: int = 20_000
    past: int = 48
    ahead: int = 6
    batch: int = 64
    hidden: int = 96
    steps: int = 400
    lr: float = 3e-3


def gauges(s: Settings, rng: np.random.Generator) -> np.ndarray:
    t = np.arange(s.hours)
    tide = np.sin(2 * np.pi * t / 12.42) + 0.3 * np.sin(2 * np.pi * t / 12.0)
    rain = rng.gamma(0.1, 6.0, s.hours)
    discharge = np.convolve(rain, np.exp(-np.arange(200) / 40), mode="full")[: s.hours]
    wind = np.convolve(rng.normal(size=s.hours), np.ones(24) / 5, mode="same")
    salinity = 20 + 5 * tide - 0.4 * discharge + wind + rng.normal(0, 0.3, s.hours)
    table = np.stack([salinity, tide, discharge, wind], axis=1)
    return ((table - table.mean(0)) / table.std(0)).astype(np.float32)


class Windows:
    """All windows as a view of one table; a batch is one indexing operation."""

    def __init__(self, table: np.ndarray, s: Settings) -> None:
        self.windows = torch.from_numpy(table).unfold(0, s.past + s.ahead, 1).transpose(1, 2)
        self.settings = s

    def shuffled(self) -> Iterator[Batch]:
        s = self.settings
        while True:
            for rows in torch.randperm(len(self.windows)).split(s.batch):
                picked = self.windows[rows]
                yield Batch(picked[:, : s.past], picked[:, s.past :, 0])


class Forecaster(nn.Module):
    def __init__(self, features: int, s: Settings) -> None:
        super().__init__()
        self.rnn = nn.GRU(features, s.hidden, batch_first=True)
        self.project = nn.Linear(s.hidden, s.ahead)

    def forward(self, past: Tensor) -> Tensor:
        _, last = self.rnn(past)
        return past[:, -1:, 0] + self.project(last[0])


def main(s: Settings = Settings()) -> None:
    torch.manual_seed(5)
    table = gauges(s, np.random.default_rng(5))
    model = Forecaster(table.shape[1], s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, s.steps)
    criterion = nn.SmoothL1Loss()
    recent = 0.0
    for step, batch in zip(range(1, s.steps + 1), Windows(table, s).shuffled()):
        loss = criterion(model(batch.past), batch.future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent += loss.item()
        if step % 50 == 0:
            print(f"{step:4d}/{s.steps} smooth l1 {recent / 50:.4f}")
            recent = 0.0


if __name__ == "__main__":
    main()
