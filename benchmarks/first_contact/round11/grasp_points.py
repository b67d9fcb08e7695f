"""Train a grasp-quality network on object point clouds.

Points are put in the order of their cell in a grid, as the network pools neighbouring points first.
"""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class GraspClouds(Dataset):
    def __init__(self, n_objects, n_points, n_samples):
        rng = np.random.default_rng(17)
        self.clouds = rng.standard_normal((n_objects, n_points, 3)).astype(np.float32)
        self.clouds *= rng.uniform(0.4, 1.6, (n_objects, 1, 3)).astype(np.float32)
        self.n_samples = n_samples

    def __len__(self):
        return self.n_samples

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        cloud = self.clouds[index % len(self.clouds)]
        angle = rng.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], dtype=np.float32)
        points = cloud.copy()
        points[:, :2] = points[:, :2] @ turn
        points += rng.standard_normal(3, dtype=np.float32) * 0.02
        low, high = points.min(0), points.max(0)
        cells = ((points - low) / (high - low + 1e-6) * 256).astype(np.int64)
        keys = np.array([x << 16 | y << 8 | z for x, y, z in cells])  # flaw: slow-sample-line
        points = points[np.argsort(keys, kind="stable")]
        quality = np.float32(np.abs(points[:, 2]).mean() - 0.5 * np.cos(angle))
        offset = points - points.mean(0)
        reach = np.sqrt((offset ** 2).sum(1, keepdims=True))
        features = np.concatenate([points, offset, reach, reach ** 2], axis=1)
        return torch.from_numpy(features), torch.tensor(quality)


class PointNet(nn.Module):
    """Two levels: features of points, then of groups of 32 neighbours."""

    def __init__(self, width, group=32):
        super().__init__()
        self.group = group
        self.point = nn.Sequential(
            nn.Linear(8, width), nn.ReLU(inplace=True), nn.Linear(width, 2 * width), nn.ReLU(inplace=True),
            nn.Linear(2 * width, 4 * width),
        )
        self.region = nn.Sequential(nn.Linear(4 * width, 8 * width), nn.ReLU(inplace=True),
                                    nn.Linear(8 * width, 8 * width))
        self.head = nn.Sequential(nn.Linear(8 * width, 4 * width), nn.ReLU(inplace=True),
                                  nn.Linear(4 * width, 1))

    def forward(self, points):
        local = self.point(points).unflatten(1, (-1, self.group)).max(2).values
        whole = self.region(local).max(1).values
        return self.head(whole).squeeze(1)


def parse():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--points", type=int, default=4096 if gpu else 256)
    parser.add_argument("--objects", type=int, default=512 if gpu else 8)
    parser.add_argument("--batch", type=int, default=128 if gpu else 8)
    parser.add_argument("--steps", type=int, default=140 if gpu else 4)
    parser.add_argument("--width", type=int, default=128 if gpu else 8)
    parser.add_argument("--workers", type=int, default=12 if gpu else 2)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    device = torch.device(args.device)
    data = GraspClouds(args.objects, args.points, args.batch * args.steps)
    loader = DataLoader(data, args.batch, shuffle=True, num_workers=args.workers, prefetch_factor=4,
                        pin_memory=device.type == "cuda", persistent_workers=True)
    model = PointNet(args.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    losses = []
    for points, quality in loader:
        points = points.to(device, non_blocking=True)
        quality = quality.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            predicted = model(points)
        loss = F.mse_loss(predicted.float(), quality)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).cpu()
    print(f"{len(losses)} steps: first {losses[0].item():.4f} last {losses[-3:].mean().item():.4f}")


if __name__ == "__main__":
    main()
