"""Train a small classifier on bird songs; pitch shifting and mel features happen per clip."""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


def mel_matrix(bins, mels, rate):
    def to_mel(hz):
        return 2595 * np.log10(1 + hz / 700)

    edges = 700 * (10 ** (np.linspace(to_mel(50), to_mel(rate / 2), mels + 2) / 2595) - 1)
    freqs = np.linspace(0, rate / 2, bins)
    rise = (freqs - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - freqs) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rise, fall)).astype(np.float32)


class BirdClips(Dataset):
    def __init__(self, clips, samples=16000, species=10, rate=16000):
        rng = np.random.default_rng(3)
        t = np.arange(samples) / rate
        self.species = rng.integers(0, species, clips)
        base = 800 + 300 * self.species[:, None]
        self.waves = np.sin(2 * np.pi * (base + 400 * np.sin(9 * t)) * t).astype(np.float32)
        self.mel = mel_matrix(513, 40, rate)
        self.window = np.hanning(1024).astype(np.float32)

    def __len__(self):
        return len(self.species)

    def pitch_shift(self, wave, factor):
        positions = np.arange(0, len(wave) - 1, factor)
        shifted = np.interp(positions, np.arange(len(wave)), wave).astype(np.float32)
        return np.resize(shifted, len(wave))

    def __getitem__(self, i):
        wave = self.pitch_shift(self.waves[i], 0.9 + 0.2 * ((i * 31) % 97) / 97)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 1024)[::256] * self.window
        power = np.abs(np.fft.rfft(frames)).astype(np.float32) ** 2
        return np.log1p(self.mel @ power.T), self.species[i]


class SongNet(nn.Module):
    def __init__(self, species=10, width=160):
        super().__init__()
        self.rnn = nn.GRU(40, width, batch_first=True)
        self.head = nn.Linear(width, species)

    def forward(self, mel):
        _, last = self.rnn(mel.transpose(1, 2))
        return self.head(last[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clips", type=int, default=320)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(  # flaw: loader-without-workers
        BirdClips(args.clips), batch_size=args.batch_size, shuffle=True, drop_last=True
    )
    model = SongNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    for epoch in range(args.epochs):
        for mel, species in loader:
            loss = F.cross_entropy(model(mel), species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
