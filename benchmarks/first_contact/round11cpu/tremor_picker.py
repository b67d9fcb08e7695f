"""Picks the onset of tremors in three-component seismograms that are fetched from a slow archive."""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TremorArchive(Dataset):
    """Every trace is read on demand; a read takes a fraction of a millisecond."""

    def __init__(self, traces: int, samples: int, seed: int):
        rng = np.random.default_rng(seed)
        self.ground = rng.normal(0, 1, (3, 4 * samples)).astype(np.float32)
        self.wave = (rng.normal(0, 1.5, (3, samples)) * np.exp(-np.arange(samples) / 80.0)).astype(np.float32)
        self.onset = rng.integers(samples // 8, samples // 2, traces)
        self.shift = rng.integers(0, 3 * samples, traces)
        self.samples = samples

    def __len__(self) -> int:
        return len(self.onset)

    def fetch(self, i: int) -> np.ndarray:
        time.sleep(0.0003)
        trace = self.ground[:, self.shift[i] : self.shift[i] + self.samples].copy()
        trace[:, self.onset[i] :] += self.wave[:, : self.samples - self.onset[i]]
        return trace

    def __getitem__(self, i: int):
        return self.fetch(i), self.onset[i] // 8


class Picker(nn.Module):
    """Scores of the onset for every eighth sample."""

    def __init__(self, width: int):
        super().__init__()
        self.enter = nn.Conv1d(3, width, 16, stride=8, padding=4)
        self.body = nn.ModuleList([nn.Conv1d(width, width, 5, padding=2) for _ in range(4)])
        self.leave = nn.Conv1d(width, 1, 1)

    def forward(self, traces: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.enter(traces))
        for conv in self.body:
            h = h + F.relu(conv(h))
        return self.leave(h).squeeze(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=11_200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=112)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(170)
    loader = DataLoader(
        TremorArchive(args.traces, samples=512, seed=171),
        batch_size=args.batch,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        prefetch_factor=4 if args.workers else None,
    )
    model = Picker(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    close = seen = 0
    for step, (traces, onset) in enumerate(loader, start=1):
        scores = model(traces)
        loss = F.cross_entropy(scores, onset)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        close += ((scores.argmax(1) - onset).abs() <= 1).sum().item()
        seen += len(onset)
        if step % 70 == 0:
            print(f"batch {step}: loss {loss.item():.4f}, close picks {close / seen:.3f}")
            close = seen = 0


if __name__ == "__main__":
    main()
