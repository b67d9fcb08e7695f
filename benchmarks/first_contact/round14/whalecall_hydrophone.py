"""Classify whale calls in hydrophone clips: noisy, filtered, time-warped on the CPU, spectrogram transformer on the GPU."""
import os
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass
class Feed:
    clips: int = 64 if TINY else 3200
    length: int = 4096 if TINY else 65536
    per_batch: int = 8 if TINY else 32
    readers: int = 2  # flaw: too-few-loader-workers
    ahead: int = 3


@dataclass
class Plan:
    feed: Feed = field(default_factory=Feed)
    width: int = 64 if TINY else 512
    depth: int = 2 if TINY else 8
    species: int = 12
    epochs: int = 1
    lr: float = 3e-4


class Hydrophone(Dataset):
    def __init__(self, feed):
        self.feed = feed
        rng = np.random.default_rng(8)
        self.bank = rng.standard_normal((24, feed.length + 4096)).astype(np.float32)
        self.species = rng.integers(0, 12, feed.clips)
        self.band = np.fft.rfftfreq(feed.length).astype(np.float32)
        self.grid = np.arange(feed.length, dtype=np.float32)

    def __len__(self):
        return self.feed.clips

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        n = self.feed.length
        start = rng.integers(0, 4096)
        clip = self.bank[i % 24, start:start + n]
        # propagation loss: a random band pass
        low, high = sorted(rng.uniform(0.01, 0.45, 2))
        shape = 1.0 / (1.0 + np.exp(-400 * (self.band - low))) - 1.0 / (1.0 + np.exp(-400 * (self.band - high)))
        clip = np.fft.irfft(np.fft.rfft(clip) * shape, n)
        # Doppler: resample along a wavy clock
        clock = self.grid + 12.0 * np.sin(self.grid * (6.28 / n) * rng.uniform(1, 3))
        clip = np.interp(clock, self.grid, clip)
        # ship noise
        ship = rng.standard_normal(n)
        clip = clip + 0.1 * np.cumsum(ship - ship.mean()) / np.sqrt(n)
        clip = clip + (self.species[i] + 1) * 0.02 * np.sin(self.grid * 0.05 * (self.species[i] + 1))
        clip = np.tanh(clip / (np.abs(clip).mean() * 3))
        return torch.from_numpy(clip.astype(np.float32)), int(self.species[i])


class Listener(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.register_buffer("window", torch.hann_window(512))
        self.inlet = nn.Linear(256, plan.width)
        layer = nn.TransformerEncoderLayer(plan.width, 8, 4 * plan.width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, plan.depth, enable_nested_tensor=False)
        self.outlet = nn.Linear(plan.width, plan.species)

    def forward(self, sound):
        with torch.autocast(DEV.type, enabled=False):
            spec = torch.stft(sound, 512, 128, window=self.window, return_complex=True)
            spec = torch.log1p(spec.abs())[:, :256].transpose(1, 2)
        return self.outlet(self.body(self.inlet(spec)).mean(1))


def main(plan):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    feed = plan.feed
    loader = DataLoader(Hydrophone(feed), batch_size=feed.per_batch, shuffle=True, drop_last=True,
                        num_workers=feed.readers, prefetch_factor=feed.ahead, persistent_workers=True,
                        pin_memory=DEV.type == "cuda")
    net = Listener(plan).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=plan.lr, fused=True)
    tally = torch.zeros((), device=DEV)
    steps = 0
    for _ in range(plan.epochs):
        for sound, kind in loader:
            sound = sound.to(DEV, non_blocking=True)
            kind = kind.to(DEV, non_blocking=True)
            with torch.autocast(DEV.type, torch.bfloat16):
                loss = F.cross_entropy(net(sound), kind)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tally += loss.detach()
            steps += 1
    print(f"{steps} batches, mean loss {tally.item() / steps:.4f}")


if __name__ == "__main__":
    main(Plan())
