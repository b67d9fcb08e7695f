"""Keyword spotting: waveforms are augmented and turned into log spectrograms by the loader."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class SpokenWords(Dataset):
    def __init__(self, clips=128, samples=8000, words=8, seed=1):
        rng = np.random.default_rng(seed)
        t = np.arange(samples) / 8000
        self.labels = rng.integers(0, words, clips)
        pitch = 200 + 150 * self.labels[:, None]
        noise = rng.standard_normal((clips, samples))
        self.waves = (np.sin(2 * np.pi * pitch * t) + 0.3 * noise).astype(np.float32)
        self.window = np.hanning(400).astype(np.float32)
        self.noise = rng.standard_normal(3 * samples).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        wave = self.waves[index]
        start = (index * 977) % (2 * len(wave))
        wave = np.roll(wave, start % 800) + 0.1 * self.noise[start : start + len(wave)]
        frames = np.lib.stride_tricks.sliding_window_view(wave, 400)[::80]
        power = np.abs(np.fft.rfft(frames * self.window, n=512)) ** 2
        spectrogram = np.log(power + 1e-6).astype(np.float32)
        spectrogram -= spectrogram.mean(axis=0)
        return spectrogram.T[:64].copy(), int(self.labels[index])


class Spotter(nn.Module):
    def __init__(self, bins=64, channels=48, words=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(bins, channels, 5, stride=2),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 5, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(channels, words),
        )

    def forward(self, x):
        return self.net(x)


class Trainer:
    def __init__(self, epochs=60):
        self.epochs = epochs
        self.loader = DataLoader(  # flaw: loader-workers-restart
            SpokenWords(),
            batch_size=32,
            shuffle=True,
            num_workers=2,  # flaw: loader-workers-restart
        )
        self.model = Spotter()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.criterion = nn.CrossEntropyLoss()

    def run_epoch(self):
        total = torch.zeros(())
        for spectrograms, labels in self.loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(spectrograms), labels)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total.item() / len(self.loader)

    def fit(self):
        for epoch in range(self.epochs):
            mean = self.run_epoch()
            if epoch % 15 == 14:
                print(f"epoch {epoch + 1}: {mean:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer().fit()
