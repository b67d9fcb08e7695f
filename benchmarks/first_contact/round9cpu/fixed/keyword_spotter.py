"""Keyword spotting on one-second clips: log-mel features, a small conv net."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 8000
WORDS = 12


def synth_clips(n, rng):
    labels = rng.integers(0, WORDS, n)
    t = np.arange(RATE, dtype=np.float32) / RATE
    tones = np.sin(2 * np.pi * (200 + 90 * np.arange(WORDS))[:, None] * t)
    clips = tones[labels] * 8000 + rng.normal(0, 900, (n, RATE))
    return clips.astype(np.int16), labels


def mel_bank(n_mels=40, n_fft=256):
    hz = np.linspace(0, RATE / 2, n_fft // 2 + 1)
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 1400), n_mels + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    up = (hz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - hz) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(up, down)).astype(np.float32)


class Clips(Dataset):
    """Decodes, shifts, stretches and mixes noise into a clip, then takes its log-mel."""

    def __init__(self, clips, labels):
        self.clips = clips
        self.labels = labels
        self.bank = mel_bank()
        self.window = np.hanning(256).astype(np.float32)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        rng = np.random.default_rng()
        wave = self.clips[i].astype(np.float32) / 32768
        speed = rng.uniform(0.9, 1.1)
        wave = np.interp(np.arange(RATE) * speed, np.arange(RATE), wave, right=0.0)
        wave = np.roll(wave, rng.integers(-800, 800))
        noise = np.fft.rfft(rng.standard_normal(RATE))
        noise /= np.sqrt(np.arange(1, len(noise) + 1))
        wave = wave + rng.uniform(0, 0.05) * np.fft.irfft(noise, RATE)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 256)[::80]
        power = np.abs(np.fft.rfft(frames * self.window, axis=1)) ** 2
        mel = np.log(power.astype(np.float32) @ self.bank.T + 1e-5)
        return torch.from_numpy(mel.T[None].copy()), int(self.labels[i])


class SpotNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width * 2, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width * 2),
            nn.ReLU(inplace=True),
        )
        self.head = nn.Linear(width * 2, WORDS)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Trainer:
    def __init__(self, model, loader, lr=2e-3):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)

    def fit(self, epochs):
        for epoch in range(epochs):
            total = torch.zeros(())
            for mel, word in self.loader:
                loss = F.cross_entropy(self.model(mel), word)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.detach()
            print(f"epoch {epoch} loss {total.item() / len(self.loader):.4f}")


def main():
    torch.manual_seed(0)
    clips, labels = synth_clips(1200, np.random.default_rng(0))
    loader = DataLoader(
        Clips(clips, labels),
        batch_size=32,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
    )
    Trainer(SpotNet(), loader).fit(epochs=4)


if __name__ == "__main__":
    main()
