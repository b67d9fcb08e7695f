"""Grades lighthouse lenses from rendered beam patterns; patterns are drawn by loader workers."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
BEAMS, NIGHTS = (32, 2) if TINY else (192, 22)


class Beams(Dataset):
    def __len__(self):
        return BEAMS

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        grade = index % 4
        y, x = np.mgrid[-1:1:48j, -1:1:48j]
        beam = np.cos((4 + 3 * grade) * np.hypot(x, y)) + 0.4 * rng.normal(size=(48, 48))
        return torch.from_numpy(beam.astype(np.float32))[None], grade


class Keeper:
    def __init__(self):
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 5, 2, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4),
        )
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=2e-3, fused=True)

    @property
    def loader(self):
        return DataLoader(Beams(), batch_size=32, num_workers=2)  # flaw: loader-workers-restart

    def night(self):
        total = torch.zeros(())
        for beams, grade in self.loader:
            loss = nn.functional.cross_entropy(self.net(beams), grade)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total.item()


if __name__ == "__main__":
    torch.manual_seed(18)
    keeper = Keeper()
    for night in range(NIGHTS):
        total = keeper.night()
        if night % 5 == 0:
            print(f"night {night}: {total:.4f}")
    print(f"last night: {total:.4f}")
