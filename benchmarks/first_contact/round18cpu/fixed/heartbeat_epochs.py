"""Arrhythmia classification from short ECG windows; many short epochs over a small archive."""
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
EPOCHS = 2 if TINY else 10
WINDOWS = 32 if TINY else 256
BATCH = 8 if TINY else 32


class Beats(Dataset):
    """Windows of a synthetic archive. The filter bank is built on first use, in the process that uses it."""

    def __init__(self, count, length=512):
        rng = np.random.default_rng(12)
        self.kind = rng.integers(0, 4, count)
        t = np.linspace(0, 4, length, dtype=np.float32)
        self.wave = np.sin(2 * np.pi * t * (1 + self.kind[:, None])).astype(np.float32)
        self.wave += 0.2 * rng.standard_normal(self.wave.shape).astype(np.float32)
        self.bank = None

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        if self.bank is None:
            n = self.wave.shape[1]
            spread = np.linalg.inv(np.eye(n) + 0.5 * np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n)
            self.bank = np.linalg.svd(spread)[0][:, :64].T.astype(np.float32)
        return np.concatenate([self.wave[i], self.bank @ self.wave[i]]), self.kind[i]


LOADING = dict(batch_size=BATCH, shuffle=True, drop_last=True, num_workers=1, persistent_workers=True)


def make_loader(split, seed):
    return DataLoader(split, generator=torch.Generator().manual_seed(seed), **LOADING)


class BeatNet(nn.Sequential):
    def __init__(self, width=32 if TINY else 64):
        super().__init__(
            nn.Unflatten(1, (1, -1)),
            nn.Conv1d(1, width, 7, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(width, width, 5, padding=2), nn.GELU(),
            nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(8 * width, 4),
        )


def run():
    torch.manual_seed(0)
    loader = make_loader(Beats(WINDOWS), seed=1)
    net = BeatNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    began, steps = time.perf_counter(), 0
    for epoch in range(EPOCHS):
        right = torch.zeros((), dtype=torch.long)
        for wave, kind in loader:
            scores = net(wave)
            loss = F.cross_entropy(scores, kind)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            right += (scores.detach().argmax(1) == kind).sum()
            steps += 1
        print(f"epoch {epoch}: {right.item() / WINDOWS:.2f} right")
    print(f"{(time.perf_counter() - began) / steps * 1e3:.1f} ms a step", file=sys.stderr)


if __name__ == "__main__":
    run()
