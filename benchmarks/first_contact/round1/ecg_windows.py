"""Heart-beat windows, read by worker processes, classified by a small convolutional net."""
import math
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Beats(Dataset):
    def __init__(self, count=26_000, length=8192):
        self.signal = np.sin(np.linspace(0, 9000, 500_000)).astype(np.float32)
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def shape(self, beat):
        values = [0.3 * math.sin(v) + 0.01 * abs(v) ** 1.5 - 0.02 * math.exp(-v * v) for v in beat.tolist()]  # flaw: slow-sample-line
        return np.asarray(values, dtype=np.float32)

    def __getitem__(self, i):
        start = (i * 7919) % (len(self.signal) - self.length)
        beat = self.shape(self.signal[start : start + self.length])
        return torch.from_numpy(beat)[None], i % 5


def build():
    layers, c = [], 1
    for width in (128, 256, 256, 512):
        layers += [nn.Conv1d(c, width, 7, 2, 3, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(c, 5))


def main():
    torch.backends.cudnn.benchmark = True
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cores = len(os.sched_getaffinity(0))
    loader = DataLoader(
        Beats(), 64, shuffle=True, num_workers=max(1, cores - 1), pin_memory=True, persistent_workers=True, prefetch_factor=4
    )
    net = build().to(device)
    opt = torch.optim.Adam(net.parameters(), fused=True)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
