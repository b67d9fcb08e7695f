"""Object classes from lidar sweeps: mean features per voxel, scattered to a bird's-eye view."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
POINTS = 24000 if cuda else 500
GRID = 200 if cuda else 32
SWEEPS = 4800 if cuda else 8
BATCH = 16 if cuda else 2
WIDTH = 64 if cuda else 8


class Sweeps(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(1)
        self.count = count
        self.ground = rng.normal(0, 18, (8, POINTS, 2)).astype(np.float32)
        self.height = rng.gamma(2.0, 0.6, (8, POINTS, 1)).astype(np.float32)
        self.intensity = rng.random((8, POINTS, 1), dtype=np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        k = i % 8
        angle = 0.1 * i
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], np.float32)
        xy = self.ground[k] @ turn
        points = np.concatenate([xy, self.height[k], self.intensity[k]], 1)
        cells = np.floor(xy / 0.5).astype(np.int64) + GRID // 2
        inside = ((cells >= 0) & (cells < GRID)).all(1)
        points, cells = points[inside], cells[inside]
        flat, which = np.unique(cells[:, 0] * GRID + cells[:, 1], return_inverse=True)
        voxels = np.stack([flat // GRID, flat % GRID], 1)
        count = np.bincount(which, minlength=len(voxels))
        means = np.stack([np.bincount(which, points[:, c]) / count for c in range(4)])
        bev = np.zeros((5, GRID, GRID), np.float32)
        bev[:4, voxels[:, 0], voxels[:, 1]] = means
        bev[4, voxels[:, 0], voxels[:, 1]] = np.log1p(count)
        return torch.from_numpy(bev), i % 10


def conv(cin, cout, stride=1):
    return [nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(True)]


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
model = nn.Sequential(
    *conv(5, WIDTH),
    *conv(WIDTH, WIDTH),
    *conv(WIDTH, 2 * WIDTH, 2),
    *conv(2 * WIDTH, 2 * WIDTH),
    *conv(2 * WIDTH, 4 * WIDTH, 2),
    *conv(4 * WIDTH, 4 * WIDTH),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(4 * WIDTH, 10),
).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=cuda)
loader = DataLoader(
    Sweeps(SWEEPS),
    batch_size=BATCH,
    shuffle=True,
    drop_last=True,
    num_workers=14 if cuda else 0,
    prefetch_factor=4 if cuda else None,
    pin_memory=cuda,
)

if __name__ == "__main__":
    for step, (bev, label) in enumerate(loader):
        bev = bev.to(device, non_blocking=True, memory_format=torch.channels_last)
        label = label.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(bev), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, round(loss.item(), 4))
