"""Keyword spotting on synthetic recordings: augmentation on the fly, GRU classifier."""
import argparse
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SpokenWords(Dataset):
    """Recordings are synthesised, shifted, mixed with noise and turned into log spectra."""

    def __init__(self, count, rate=8000, frames=98, classes=12, seed=3):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, classes, size=count)
        self.rate = rate
        self.frames = frames
        self.window = np.hanning(256).astype(np.float32)
        self.noise = rng.standard_normal(rate * 4).astype(np.float32)
        self.epoch_seed = seed * 1000

    def __len__(self):
        return len(self.labels)

    def _waveform(self, index, rng):
        pitch = 120.0 + 35.0 * self.labels[index] + rng.uniform(-8, 8)
        t = np.arange(self.rate, dtype=np.float32) / self.rate
        wave = np.zeros_like(t)
        for harmonic in range(1, 5):
            wave += np.sin(2 * math.pi * pitch * harmonic * t + rng.uniform(0, 6.28)) / harmonic
        start = int(rng.integers(0, len(self.noise) - self.rate))
        return wave + rng.uniform(0.3, 1.0) * self.noise[start:start + self.rate]

    def __getitem__(self, index):
        rng = np.random.default_rng(self.epoch_seed + index)
        wave = self._waveform(index, rng).astype(np.float32)
        hop = (self.rate - 256) // (self.frames - 1)
        strided = np.lib.stride_tricks.sliding_window_view(wave, 256)[::hop][:self.frames]
        power = np.abs(np.fft.rfft(strided * self.window, axis=1)) ** 2
        bands = power[:, :128].reshape(self.frames, 64, 2).mean(axis=2)
        spec = np.log1p(bands).astype(np.float32)
        return torch.from_numpy(spec), int(self.labels[index])


class Spotter(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.rnn = nn.GRU(64, width, batch_first=True)
        self.out = nn.Linear(width, classes)

    def forward(self, spec):
        _, last = self.rnn(self.norm(spec))
        return self.out(last[-1])


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--count", type=int, default=960)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--width", type=int, default=96)
    p.add_argument("--workers", type=int, default=1)
    return p.parse_args()


def main():
    args = options()
    torch.manual_seed(0)
    data = SpokenWords(args.count)
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True,
                        generator=torch.Generator().manual_seed(1),
                        num_workers=args.workers, persistent_workers=args.workers > 0)
    model = Spotter(args.width, 12)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        total = 0.0
        for spec, label in loader:
            loss = criterion(model(spec), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
