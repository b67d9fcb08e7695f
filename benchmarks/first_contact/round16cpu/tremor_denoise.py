"""Removes noise from seismograms with a convolutional autoencoder (records come from NumPy)."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY")
STATIONS = 2 if TINY else 10
SAMPLES = 256 if TINY else 1536
STEPS = 6 if TINY else 90


class Records:
    """Endless batches of (noisy, clean) records."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.clock = np.linspace(0.0, 10.0, SAMPLES)

    def __iter__(self):
        return self

    def __next__(self):
        onset = self.rng.uniform(1, 6, (STATIONS, 3, 1))
        pitch = self.rng.uniform(2, 6, (STATIONS, 3, 1))
        since = np.clip(self.clock - onset, 0, None)
        clean = np.sin(pitch * since) * np.exp(-0.6 * since)
        noisy = clean + 0.4 * self.rng.standard_normal(clean.shape)
        return torch.from_numpy(noisy), torch.from_numpy(clean)  # flaw: float64-on-device


class Denoiser(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv1d(3, width, 9, stride=2, padding=4), nn.GELU(),
            nn.Conv1d(width, 2 * width, 9, stride=2, padding=4), nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 9, padding=4), nn.GELU(),
        )
        self.up = nn.Sequential(
            nn.ConvTranspose1d(2 * width, width, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(width, 3, 4, stride=2, padding=1),
        )

    def forward(self, records):
        return self.up(self.down(records))


def main():
    torch.manual_seed(0)
    model = Denoiser().to(torch.double)  # flaw: float64-on-device
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    trail = []
    for step, (noisy, clean) in zip(range(STEPS), Records()):
        loss = F.mse_loss(model(noisy), clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        trail.append(loss.detach())
    trail = torch.stack(trail)
    print(f"mse  first {trail[0].item():.4f}  last {trail[-1].item():.4f}")


if __name__ == "__main__":
    main()
