import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class BirdPhotos(Dataset):
    def __init__(self, count, side):
        rng = np.random.default_rng(0)
        self.side = side
        self.images = rng.integers(0, 256, (64, side + 32, side + 32, 3), dtype=np.uint8)
        self.labels = rng.integers(0, 200, count)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i % 64]
        y, x = np.random.randint(0, 32, 2)
        img = img[y : y + self.side, x : x + self.side]
        if np.random.rand() < 0.5:
            img = img[:, ::-1]
        img = img.astype(np.float32) * (np.random.uniform(0.8, 1.2) / 255)
        img = (img - np.float32(0.45)) / np.float32(0.22)
        return torch.from_numpy(np.ascontiguousarray(img.transpose(2, 0, 1))), int(self.labels[i])


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(c, c // 2, 1, bias=False), nn.BatchNorm2d(c // 2), nn.ReLU(True),
            nn.Conv2d(c // 2, c // 2, 3, padding=1, bias=False), nn.BatchNorm2d(c // 2), nn.ReLU(True),
            nn.Conv2d(c // 2, c, 1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return F.relu(x + self.f(x))


def get_model(c):
    return nn.Sequential(
        nn.Conv2d(3, c, 7, 4, 3, bias=False), nn.BatchNorm2d(c), nn.ReLU(True), *[Bottleneck(c) for _ in range(4)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 200))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=4 if SMALL else 64)
    ap.add_argument("--side", type=int, default=32 if SMALL else 224)
    ap.add_argument("--steps", type=int, default=30 if SMALL else 80)
    args = ap.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    data = BirdPhotos(args.batch_size * args.steps, args.side)
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, pin_memory=True, drop_last=True)  # flaw: loader-without-workers
    model = get_model(8 if SMALL else 128).to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, fused=True)
    for it, (x, y) in enumerate(loader):
        x = x.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 40 == 0:
            print(f"[{it}/{len(loader)}] {loss.item():.4f}")


if __name__ == "__main__":
    main()
