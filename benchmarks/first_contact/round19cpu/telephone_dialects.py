"""Dialects on the telephone: companded bytes, as the exchange stores them, into a small classifier."""
import argparse
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def compress(wave):
    """Mu-law: one byte for each sample, as in the telephone network."""
    bent = np.sign(wave) * np.log1p(255 * np.abs(wave)) / math.log(256)
    return np.round((bent + 1) / 2 * 255).astype(np.uint8)


class Calls(Dataset):
    def __init__(self, count, length, dialects, seed):
        rng = np.random.default_rng(seed)
        self.dialect = rng.integers(0, dialects, count)
        time = np.arange(length) / 8000
        pitch = 110 + 35 * self.dialect + rng.normal(0, 9, count)
        lilt = 3 + self.dialect % 3
        phase = 2 * np.pi * pitch[:, None] * time + 2 * np.sin(2 * np.pi * lilt[:, None] * time)
        wave = 0.4 * np.sin(phase) + 0.2 * np.sin(2 * phase) + 0.1 * rng.standard_normal((count, length))
        self.stored = [row.tobytes() for row in compress(wave.clip(-1, 1))]

    def __len__(self):
        return len(self.stored)

    @staticmethod
    def expand(byte):
        bent = byte / 255 * 2 - 1
        return math.copysign((256 ** abs(bent) - 1) / 255, bent)

    def __getitem__(self, index):
        wave = np.array([self.expand(b) for b in self.stored[index]], np.float32)  # flaw: slow-sample-line
        return torch.from_numpy(wave), int(self.dialect[index])


class Listener(nn.Module):
    def __init__(self, dialects, frame=80, width=128):
        super().__init__()
        self.frame = frame
        self.ear = nn.Sequential(nn.Linear(frame, width), nn.ReLU(inplace=True), nn.Linear(width, width))
        self.memory = nn.GRU(width, 96, batch_first=True)
        self.verdict = nn.Linear(96, dialects)

    def forward(self, wave):
        frames = self.ear(wave.view(len(wave), -1, self.frame))
        return self.verdict(self.memory(frames)[1][0])


class Progress:
    def __init__(self, every):
        self.every, self.total, self.seen = every, 0.0, 0

    def __call__(self, loss):
        self.total += loss.item()
        self.seen += 1
        if self.seen % self.every == 0:
            print(f"{self.seen:5d} batches  loss {self.total / self.every:.4f}", flush=True)
            self.total = 0.0


def train(net, loader, epochs, lr, callbacks):
    opt = torch.optim.Adam(net.parameters(), lr=lr, fused=True)
    for _ in range(epochs):
        for wave, dialect in loader:
            loss = nn.functional.cross_entropy(net(wave), dialect)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for callback in callbacks:
                callback(loss)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--dialects", type=int, default=6)
    args = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # one core for the network, one for the loader
    calls = Calls(1280, 2400, args.dialects, seed=0)
    loader = DataLoader(calls, args.batch, shuffle=True, num_workers=1, persistent_workers=True)
    train(Listener(args.dialects), loader, args.epochs, 1e-3, [Progress(80)])


if __name__ == "__main__":
    main()
