"""Anchor-free detector (a small CenterNet) on synthetic street scenes, COCO-style targets."""

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")

BIG = torch.cuda.is_available()
SIZE, BATCH, IMAGES, EPOCHS = (256, 24, 1200, 5) if BIG else (64, 2, 8, 1)
CLASSES = 10


class Scenes(Dataset):
    def __init__(self, n, size):
        self.rng = np.random.default_rng(0)
        self.pool = torch.from_numpy(self.rng.integers(0, 255, (64, 3, size, size), dtype=np.uint8))
        self.counts = self.rng.integers(2, 12, n)
        self.size = size

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        n = int(self.counts[i])
        centre = torch.from_numpy(rng.uniform(0.15, 0.85, (n, 2)).astype(np.float32)) * self.size
        extent = torch.from_numpy(rng.uniform(0.05, 0.25, (n, 2)).astype(np.float32)) * self.size
        target = {
            "boxes": torch.cat([centre - extent / 2, centre + extent / 2], 1),
            "labels": torch.from_numpy(rng.integers(0, CLASSES, n)),
            "area": extent.prod(1),
            "iscrowd": torch.zeros(n, dtype=torch.int64),
        }
        return self.pool[i % len(self.pool)], target


def collate(items):
    images, targets = zip(*items)
    for i, target in enumerate(targets):
        target["image"] = torch.full_like(target["labels"], i)
    return torch.stack(images), list(targets)


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.a = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.na = nn.BatchNorm2d(cout)
        self.b = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.nb = nn.BatchNorm2d(cout)
        self.skip = nn.Identity() if stride == 1 and cin == cout else nn.Conv2d(cin, cout, 1, stride)

    def forward(self, x):
        y = F.relu(self.na(self.a(x)), inplace=True)
        return F.relu(self.nb(self.b(y)) + self.skip(x), inplace=True)


class CenterNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        stages, c = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)], width
        for out, stride, depth in ((width, 2, 2), (2 * width, 2, 3), (4 * width, 1, 4)):
            for d in range(depth):
                stages.append(Block(c, out, stride if d == 0 else 1))
                c = out
        self.body = nn.Sequential(*stages)
        self.heat = nn.Conv2d(c, CLASSES, 1)
        nn.init.constant_(self.heat.bias, -2.2)
        self.size = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        x = self.body(x)
        return self.heat(x), self.size(x)


def detection_loss(heat, size, targets):
    boxes = torch.cat([t["boxes"] for t in targets]) / 8
    labels = torch.cat([t["labels"] for t in targets])
    image = torch.cat([t["image"] for t in targets])
    centre = ((boxes[:, :2] + boxes[:, 2:]) / 2).long()
    goal = torch.zeros_like(heat)
    goal[image, labels, centre[:, 1], centre[:, 0]] = 1
    wh = size[image, :, centre[:, 1], centre[:, 0]]
    heat_loss = F.binary_cross_entropy_with_logits(heat.float(), goal.float())
    return heat_loss + 0.1 * F.l1_loss(wh.float(), (boxes[:, 2:] - boxes[:, :2]).log1p())


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if BIG else "cpu")
    loader = DataLoader(
        Scenes(IMAGES, SIZE),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        collate_fn=collate,
        num_workers=8 if BIG else 0,
        pin_memory=BIG,
        persistent_workers=BIG,
    )
    model = CenterNet(64 if BIG else 8).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    for epoch in range(EPOCHS):
        start = time.perf_counter()
        for images, targets in loader:
            images = images.to(device, non_blocking=True)
            targets = [{k: v.to(device, non_blocking=True) for k, v in t.items()} for t in targets]
            images = images.to(memory_format=torch.channels_last).float().div_(255)
            with torch.autocast(device.type, torch.bfloat16):
                heat, size = model(images)
            loss = detection_loss(heat, size, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {loss.item():.4f}, {math.ceil(IMAGES / seconds)} images/s")


if __name__ == "__main__":
    main()
