"""Bird's eye view segmentation of lidar sweeps."""
import os
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
GRID, POINTS, BATCH, STEPS, W = (16, 200, 2, 30, 4) if SMALL else (200, 20000, 16, 60, 64)


class Sweeps(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        self.count = count
        self.points = rng.uniform(0, GRID, (32, POINTS, 3)).astype(np.float32)
        self.truth = torch.from_numpy(rng.integers(0, 6, (32, GRID, GRID)))

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        cloud = self.points[i % 32]
        height = np.zeros((GRID, GRID), np.float32)
        hits = np.zeros((GRID, GRID), np.float32)
        columns = cloud[:, :2].astype(np.int64)
        np.add.at(hits, (columns[:, 0], columns[:, 1]), 1)
        for (x, y), z in zip(columns, cloud[:, 2]):  # flaw: slow-sample-line
            height[x, y] = max(height[x, y], z)  # flaw: slow-sample-line
        bev = torch.from_numpy(np.stack([height, np.log1p(hits)]))
        return bev, self.truth[i % 32]


def net(w):
    mods = [nn.Conv2d(2, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU(True)]
    for d in (1, 2, 4, 1):
        mods += [nn.Conv2d(w, w, 3, padding=d, dilation=d, bias=False), nn.BatchNorm2d(w), nn.ReLU(True)]
    return nn.Sequential(*mods, nn.Conv2d(w, 6, 1))


def main():
    torch.backends.cudnn.benchmark = True
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Sweeps(BATCH * STEPS), BATCH, num_workers=2 if SMALL else 8, pin_memory=True, persistent_workers=True)
    model = net(W).to(dev, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    for i, (bev, truth) in enumerate(loader, 1):
        bev = bev.to(dev, non_blocking=True).contiguous(memory_format=torch.channels_last)
        truth = truth.to(dev, non_blocking=True)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(bev), truth)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 30 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
