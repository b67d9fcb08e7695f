# Land cover from elevation tiles: slope, aspect and hill shade are computed for each tile.
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

small = bool(os.environ.get("TINY"))
SIDE = 32 if small else 128
CLASSES = 12
torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


class ElevationTiles(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.raw = rng.normal(size=(64, SIDE + 32, SIDE + 32)).astype(np.float32).cumsum(1).cumsum(2)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        top, left = rng.integers(0, 32, 2)
        tile = self.raw[i % 64, top:top + SIDE, left:left + SIDE]
        if rng.random() < 0.5:
            tile = tile[:, ::-1]
        dy, dx = np.gradient(tile)
        slope = np.arctan(np.hypot(dx, dy))
        aspect = np.arctan2(-dx, dy)
        sun = np.float32(rng.uniform(0, 2 * np.pi))
        shade = np.sin(0.8) * np.cos(slope) + np.cos(0.8) * np.sin(slope) * np.cos(sun - aspect)
        height = (tile - tile.mean()) / (tile.std() + 1e-3)
        planes = np.stack([height, slope, np.sin(aspect), np.cos(aspect), shade]).astype(np.float32)
        return torch.from_numpy(planes), int(i * 7 % CLASSES)


def stage(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


PROFILES = {
    "small": dict(batch_size=4, drop_last=True, shuffle=True),
    "large": dict(batch_size=64, drop_last=True, shuffle=True),
}


def make_loader(tiles, profile):
    options = dict(PROFILES[profile])
    options.update(pin_memory=device == "cuda", num_workers=2 if small else 14, persistent_workers=True)
    return DataLoader(tiles, **options)


width = 16 if small else 96
net = nn.Sequential(
    stage(5, width, 1), stage(width, 2 * width, 2), stage(2 * width, 4 * width, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, CLASSES),
).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
criterion = nn.CrossEntropyLoss()
loader = make_loader(ElevationTiles(16 if small else 64 * 60), "small" if small else "large")

for epoch in range(1 if small else 3):
    summed = torch.zeros((), device=device)
    for planes, kinds in loader:
        planes = planes.to(device, memory_format=torch.channels_last, non_blocking=True)
        kinds = kinds.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = criterion(net(planes), kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        summed += loss.detach()
    print(f"epoch {epoch}: {summed.item() / len(loader):.4f}", flush=True)
