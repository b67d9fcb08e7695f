"""PointNet on points drawn from scanned surfaces, streamed without end."""

import itertools

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

SHAPES = 6


def scan(kind, n, rng):
    u = rng.uniform(0, 2 * np.pi, n)
    v = rng.uniform(-1, 1, n)
    r = 1 + 0.3 * np.cos((kind + 1) * u)
    cloud = np.stack([r * np.cos(u), r * np.sin(u), v * (1 + 0.1 * kind)], 1)
    return cloud.astype(np.float32)


class SurfaceStream(IterableDataset):
    def __init__(self, scans, points=256, seed=0):
        self.scans = scans
        self.points = points
        self.seed = seed

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        while True:
            kind = int(rng.integers(len(self.scans)))
            cloud = self.scans[kind]
            pick = rng.choice(len(cloud), self.points, replace=False)
            sample = cloud[pick]
            angle = rng.uniform(0, 2 * np.pi)
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=np.float32)
            yield torch.from_numpy(sample @ turn), kind


class PointNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.point = nn.Sequential(
            nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 128)
        )
        self.out = nn.Sequential(nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, xyz):
        return self.out(self.point(xyz).amax(1))


def train(steps=260, batch=24):
    torch.manual_seed(0)
    rng = np.random.default_rng(5)
    scans = [scan(k, 40_000, rng) for k in range(SHAPES)]
    loader = DataLoader(SurfaceStream(scans), batch_size=batch)
    net = PointNet(SHAPES)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for step, (xyz, kind) in enumerate(itertools.islice(loader, steps)):
        loss = F.cross_entropy(net(xyz), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 4))


if __name__ == "__main__":
    train()
