"""Catalogue of tremor recordings: text lines as the stations send them."""
import numpy as np
import torch
from torch.utils.data import Dataset

KINDS = 12


def station_lines(count, length, seed):
    """Lines such as ``ST042;7;0.113,0.094,...``: station, kind of tremor, counts."""
    rng = np.random.default_rng(seed)
    t = np.arange(length) / length
    lines = []
    for _ in range(count):
        kind = int(rng.integers(KINDS))
        wave = np.sin(2 * np.pi * (6 + 5 * kind) * t) * np.exp(-3 * np.abs(t - rng.uniform(0.3, 0.7)))
        wave = wave + 0.3 * rng.standard_normal(length)
        numbers = ",".join(f"{v:.3f}" for v in wave)
        lines.append(f"ST{rng.integers(100):03d};{kind};{numbers}")
    return lines


class Recording:
    __slots__ = ("station", "kind", "payload")

    def __init__(self, line):
        self.station, kind, self.payload = line.split(";")
        self.kind = int(kind)

    def counts(self):
        return np.array(self.payload.split(","), dtype=np.float32)  # flaw: slow-sample-line


class TremorWindows(Dataset):
    """A random window of a recording, filtered with a random pass band, as a spectrum."""

    def __init__(self, lines, window):
        self.recordings = [Recording(line) for line in lines]
        self.window = window
        self.bins = np.arange(window // 2 + 1)

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, index):
        recording = self.recordings[index]
        counts = recording.counts()  # flaw: slow-sample-line
        start = int(torch.randint(len(counts) - self.window, ()))
        piece = counts[start : start + self.window]
        spectrum = np.fft.rfft(piece)
        cut = float(torch.empty(()).uniform_(0.6, 1.0)) * len(self.bins)
        spectrum = spectrum * (1.0 / (1.0 + (self.bins / cut) ** 8))
        features = np.log1p(np.abs(spectrum[:512])).astype(np.float32)
        return features, recording.kind
