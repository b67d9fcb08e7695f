"""Bird call tagger, trained on clean recordings that are placed into rooms and forests."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
RATE = 8000


class ReverbClips(Dataset):
    """Chirps of `n_species` kinds, heard through a random impulse response."""

    def __init__(self, n, n_species=6, seconds=1.0, ir_taps=2400):
        self.n, self.n_species = n, n_species
        self.samples = int(RATE * seconds)
        rng = np.random.default_rng(3)
        decay = np.exp(-np.arange(ir_taps) / (0.05 * RATE))
        self.rooms = [(rng.standard_normal(ir_taps) * decay).astype(np.float32) for _ in range(12)]
        self.t = np.arange(self.samples, dtype=np.float32) / RATE

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        kind = int(rng.integers(self.n_species))
        f0 = 600 + 350 * kind + rng.uniform(-40, 40)
        dry = np.sin(2 * np.pi * (f0 + 200 * kind * self.t) * self.t).astype(np.float32)
        room = self.rooms[int(rng.integers(len(self.rooms)))]
        wet = np.convolve(dry, room)[: self.samples]  # flaw: slow-sample-line
        wet = wet / (np.abs(wet).max() + 1e-6)
        wet += 0.05 * rng.standard_normal(self.samples)
        return torch.from_numpy(wet.astype(np.float32)), kind


class Tagger(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.window = nn.Buffer(torch.hann_window(256))
        self.net = nn.Sequential(
            nn.Conv1d(129, 64, 5, stride=2), nn.ReLU(), nn.Conv1d(64, 64, 5, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, classes))

    def forward(self, wave):
        spec = torch.stft(wave, 256, 128, window=self.window, return_complex=True).abs()
        return self.net(torch.log1p(spec))


def main(epochs, clips_per_epoch):
    torch.manual_seed(0)
    data = ReverbClips(clips_per_epoch * 4)
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True)
    model = Tagger(data.n_species)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for epoch in range(epochs):
        running = torch.zeros(())
        for wave, kind in loader:
            loss = nn.functional.cross_entropy(model(wave), kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.detach()
        print(f"epoch {epoch}: loss {running.item() / len(loader):.4f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    main(ap.parse_args().epochs, clips_per_epoch=160)
