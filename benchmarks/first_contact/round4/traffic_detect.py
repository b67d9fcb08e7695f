"""Centre-point detector for traffic scenes, trained on synthetic frames."""
import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL", "") not in ("", "0")
CLASSES = 6
SIDE = 32 if SMALL else 256
GRID = SIDE // 2
BATCH = 2 if SMALL else 24
MAX_OBJECTS = 40
STEPS = 30 if SMALL else 80

ys, xs = np.mgrid[0:GRID, 0:GRID].astype(np.float32)


class Frames(Dataset):
    def __init__(self):
        rng = np.random.default_rng(3)
        self.bank = rng.integers(0, 256, (32, 3, SIDE, SIDE), dtype=np.uint8)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        n = int(rng.integers(25, MAX_OBJECTS + 1))
        centre = rng.uniform(2, GRID - 2, (n, 2)).astype(np.float32)
        size = rng.uniform(1, 8, (n, 2)).astype(np.float32)
        return self.bank[i % 32], centre, size, rng.integers(0, CLASSES, n)


def collate(samples):
    heat = np.zeros((len(samples), CLASSES, GRID, GRID), np.float32)
    wh = np.zeros((len(samples), 2, GRID, GRID), np.float32)
    weight = np.zeros((len(samples), 1, GRID, GRID), np.float32)
    for b, (_, centre, size, label) in enumerate(samples):
        for (cx, cy), s, c in zip(centre, size, label):
            sigma = max(s.min() / 3, 0.5)
            heat[b, c] = np.maximum(heat[b, c], np.exp(-((xs - cx) ** 2 + (ys - cy) ** 2) / (2 * sigma ** 2)))  # flaw: slow-sample-line
            wh[b, :, int(cy), int(cx)] = s
            weight[b, 0, int(cy), int(cx)] = 1
    image = torch.from_numpy(np.stack([s[0] for s in samples]))
    return image, torch.from_numpy(heat), torch.from_numpy(wh), torch.from_numpy(weight)


def cbr(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class CentreNet(nn.Module):
    def __init__(self, w=8 if SMALL else 64):
        super().__init__()
        self.stem = nn.Sequential(cbr(3, w, 2), cbr(w, w))
        self.low = nn.Sequential(cbr(w, 2 * w, 2), cbr(2 * w, 2 * w), cbr(2 * w, 2 * w))
        self.fuse = nn.Sequential(cbr(3 * w, w), cbr(w, w))
        self.head = nn.Conv2d(w, CLASSES + 2, 1)

    def forward(self, x):
        a = self.stem(x)
        b = F.interpolate(self.low(a), scale_factor=2)
        return self.head(self.fuse(torch.cat((a, b), 1))).split((CLASSES, 2), 1)


def train():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    torch.backends.cudnn.benchmark = True
    loader = DataLoader(Frames(), BATCH, collate_fn=collate, num_workers=1 if SMALL else 4, pin_memory=on_gpu,
                        prefetch_factor=3, persistent_workers=True)
    model = CentreNet().to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=on_gpu)
    for step, batch in enumerate(loader):
        image, heat, wh, weight = (t.to(device, non_blocking=True) for t in batch)
        image = image.to(memory_format=torch.channels_last).float().div_(255)
        with torch.autocast(device.type, torch.bfloat16):
            scores, extent = model(image)
        loss = F.binary_cross_entropy_with_logits(scores.float(), heat)
        loss = loss + 0.1 * F.l1_loss(extent.float() * weight, wh)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    train()
