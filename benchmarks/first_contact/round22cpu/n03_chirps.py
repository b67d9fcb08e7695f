"""Train a detector of compact binary mergers on simulated strain.

Every example is simulated when it is asked for, from its own number; a run is one pass
over as many examples as it needs.
"""
from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("chirps")
torch.set_num_threads(1)


@dataclass
class DataConfig:
    examples: int = 32 * 800
    seconds: float = 1.0
    rate: int = 2048
    batch: int = 32
    workers: int = 0  # flaw: loader-without-workers


@dataclass
class Config:
    data: DataConfig = field(default_factory=DataConfig)
    width: int = 24
    lr: float = 1e-3
    seed: int = 17
    report: int = 100


class Strain(Dataset):
    """Noise of a detector's colour, in every second example with a chirp in it."""

    def __init__(self, config: DataConfig):
        self.config = config
        length = int(config.seconds * config.rate)
        self.time = np.arange(length) / config.rate
        frequency = np.fft.rfftfreq(length, 1 / config.rate)
        self.colour = 1.0 / (1.0 + (frequency / 60.0) ** 2) + 0.05 + (frequency / 900.0) ** 2
        self.taper = np.hanning(length) ** 0.25

    def __len__(self) -> int:
        return self.config.examples

    def noise(self, rng: np.random.Generator) -> np.ndarray:
        real = rng.standard_normal(len(self.colour))
        imaginary = rng.standard_normal(len(self.colour))
        return (real + 1j * imaginary) * self.colour

    def chirp(self, rng: np.random.Generator) -> np.ndarray:
        merger = rng.uniform(0.55, 0.95)
        mass = rng.uniform(0.6, 1.4)
        left = np.clip(merger - self.time, 1e-3, None)
        phase = -60.0 * mass * left**0.625 * 2 * np.pi + rng.uniform(0, 2 * np.pi)
        loudness = np.minimum(left**-0.25, 4.0) * (self.time < merger)
        return rng.uniform(0.004, 0.016) * loudness * np.cos(phase)

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.float32]:
        rng = np.random.default_rng(number)
        spectrum = self.noise(rng)
        present = number % 2
        if present:
            spectrum = spectrum + np.fft.rfft(self.chirp(rng) * self.taper)
        whitened = np.fft.irfft(spectrum / self.colour)
        band = np.fft.rfft(whitened * self.taper)
        band[:20] = 0
        strain = np.fft.irfft(band)
        strain = (strain - strain.mean()) / strain.std()
        return strain.astype(np.float32)[None], np.float32(present)


def make_loader(config: DataConfig, generator: torch.Generator) -> DataLoader:
    return DataLoader(
        Strain(config),
        batch_size=config.batch,
        shuffle=True,
        generator=generator,
        num_workers=config.workers,  # flaw: loader-without-workers
        drop_last=True,
    )


class Detector(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 16, stride=4, padding=6)
        self.middle = nn.Conv1d(width, 2 * width, 8, stride=4, padding=2)
        self.deep = nn.Conv1d(2 * width, 4 * width, 8, stride=2, padding=3)
        self.score = nn.Linear(4 * width, 1)

    def forward(self, strain: torch.Tensor) -> torch.Tensor:
        x = F.gelu(self.stem(strain))
        x = F.gelu(self.middle(x))
        x = F.gelu(self.deep(x))
        return self.score(x.amax(-1)).squeeze(1)


def train(config: Config) -> Detector:
    torch.manual_seed(config.seed)
    generator = torch.Generator().manual_seed(config.seed)
    model = Detector(config.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)
    running = torch.zeros(())
    for number, (strain, present) in enumerate(make_loader(config.data, generator), start=1):
        loss = F.binary_cross_entropy_with_logits(model(strain), present)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if number % config.report == 0:
            log.info("step %4d: mean loss %.5f", number, running.item() / config.report)
            running.zero_()
    return model


if __name__ == "__main__":
    import sys

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    train(Config())
