"""Clips and their log-frequency pictures."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

RATE, LENGTH, WINDOW, HOP, BANDS = 2000, 4096, 256, 64, 64


def constant_q_bank(low=20.0):
    """Windowed complex tones, evenly spaced in the logarithm of the frequency."""
    tones = low * (RATE / 2.2 / low) ** (np.arange(BANDS) / (BANDS - 1))
    time = (np.arange(WINDOW) - WINDOW / 2) / RATE
    widths = np.minimum(6.0 / tones, WINDOW / RATE / 2)
    window = np.exp(-0.5 * (time[None] / (widths[:, None] / 2.5)) ** 2)
    bank = window * np.exp(2j * np.pi * tones[:, None] * time[None])
    bank /= np.abs(bank).sum(1, keepdims=True)
    return np.concatenate([bank.real, bank.imag]).astype(np.float32)


class CallClips(Dataset):
    def __init__(self, clips, calls, seed):
        rng = np.random.default_rng(seed)
        self.call = rng.integers(0, calls, clips)
        self.pitch = 60.0 * 1.5**self.call * rng.uniform(0.95, 1.05, clips)
        self.sweep = rng.uniform(-20, 40, clips)
        self.time = np.arange(LENGTH, dtype=np.float32) / RATE
        self.frames = np.arange(0, LENGTH - WINDOW, HOP)[:, None] + np.arange(WINDOW)

    def __len__(self):
        return len(self.call)

    def waveform(self, row, rng):
        phase = 2 * np.pi * (self.pitch[row] * self.time + 0.5 * self.sweep[row] * self.time**2)
        swell = np.exp(-((self.time - rng.uniform(0.5, 1.5)) ** 2) / 0.1)
        return swell * np.sin(phase) + rng.normal(0, 0.3, LENGTH)

    def __getitem__(self, row):
        rng = np.random.default_rng(torch.randint(2**31, ()).item())
        wave = self.waveform(row, rng).astype(np.float32)
        bank = constant_q_bank()  # flaw: slow-sample-line
        response = bank @ wave[self.frames].T
        energy = response[:BANDS] ** 2 + response[BANDS:] ** 2
        picture = np.log(energy + 1e-6) / 4 + 2
        return picture[None], int(self.call[row])


def clip_loader(clips, batch, workers):
    return DataLoader(
        clips,
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=True,
    )
