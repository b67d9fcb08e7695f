"""Classifies small lidar clusters that a labelling tool exported, one JSON document for each."""
import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"


def export(count, points, seed=0):
    """What the labelling tool writes."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        kind = i % 4
        cloud = rng.normal(size=(points, 3)) * (1 + 0.4 * kind, 1, 2 - 0.4 * kind)
        yield json.dumps({"label": kind, "frame": i, "points": [{"x": a, "y": b, "z": c} for a, b, c in cloud.round(5).tolist()]})


class Clusters(Dataset):
    def __init__(self, documents):
        self.samples = [self.parse(d) for d in documents]

    @staticmethod
    def parse(text):
        doc = json.loads(text)
        cloud = np.array([(p["x"], p["y"], p["z"]) for p in doc["points"]], dtype=np.float32)
        cloud -= cloud.mean(0)
        return torch.from_numpy(cloud), doc["label"]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU())
        self.whole = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, clouds):
        return self.whole(self.each(clouds).amax(1))


def fit(epochs, loader):
    net = PointNet()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    losses, began = [], time.perf_counter()
    for _ in range(epochs):
        for clouds, labels in loader:
            loss = nn.functional.cross_entropy(net(clouds), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
    print(f"{(time.perf_counter() - began) / len(losses) * 1e3:.1f} ms", file=sys.stderr)
    print(f"first {losses[0]:.4f} last {losses[-1]:.4f} of {len(losses)}")


if __name__ == "__main__":
    torch.manual_seed(6)
    data = Clusters(export(32 if TINY else 320, 50 if TINY else 1200))
    fit(2 if TINY else 8, DataLoader(data, batch_size=16 if TINY else 32, shuffle=True, num_workers=2, persistent_workers=True))
