"""Tumour / no tumour from MRI patches.  Intensities are standardised by rank before training."""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAST = os.environ.get("SMALL", "") == "1"


class PatchSet(Dataset):
    def __init__(self, count: int, side: int):
        rng = np.random.default_rng(5)
        self.side = side
        self.volumes = rng.gamma(2.0, 60.0, (16, 4, side * 2, side * 2)).astype(np.float32)
        self.corners = rng.integers(0, side, (count, 2))
        self.flags = rng.integers(0, 2, count)
        self.levels = np.linspace(0, 600, 256).astype(np.float32)
        self.table = np.sqrt(np.linspace(0, 1, 257)).astype(np.float32)

    def __len__(self):
        return len(self.flags)

    def tone(self, patch: np.ndarray) -> np.ndarray:
        flat = patch.ravel()
        ranks = np.searchsorted(self.levels, flat)
        return self.table[ranks].reshape(patch.shape)

    def __getitem__(self, i):
        y, x = self.corners[i]
        patch = self.volumes[i % 16, :, y:y + self.side, x:x + self.side]
        patch = self.tone(patch)
        if i & 1:
            patch = patch[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(patch)), int(self.flags[i])


class Tower(nn.Module):
    def __init__(self, c: int):
        super().__init__()
        mods: list[nn.Module] = []
        last = 4
        for mult, stride in ((1, 1), (1, 1), (2, 2), (2, 1), (4, 2), (4, 1)):
            mods += [nn.Conv2d(last, c * mult, 3, stride, 1, bias=False), nn.BatchNorm2d(c * mult), nn.ReLU(True)]
            last = c * mult
        self.features = nn.Sequential(*mods)
        self.score = nn.Linear(last, 2)

    def forward(self, x):
        return self.score(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


def main():
    side, batch, width = (16, 4, 8) if FAST else (64, 64, 96)
    steps = 30 if FAST else 60
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    data = PatchSet(batch * steps, side)
    loader = DataLoader(data, batch, num_workers=2 if FAST else 12, pin_memory=device.type == "cuda",
                        persistent_workers=True, prefetch_factor=4)
    net = Tower(width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    losses = []
    for patch, flag in loader:
        patch = patch.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        flag = flag.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(patch), flag)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print("loss", torch.stack(losses)[-10:].mean().item())


if __name__ == "__main__":
    main()
