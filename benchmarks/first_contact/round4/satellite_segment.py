import argparse
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    """Eight-band reflectance tiles with a land-use mask."""

    def __init__(self, count, size, bands=8, classes=10, seed=0):
        g = np.random.default_rng(seed)
        self.count = count
        self.scene = g.random((bands, size * 3, size * 3), dtype=np.float32)
        self.labels = g.integers(0, classes, (size * 3, size * 3), dtype=np.uint8)
        self.corner = g.integers(0, size * 2, (count, 2))
        self.size = size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        y, x = self.corner[i]
        win = np.s_[y:y + self.size, x:x + self.size]
        return torch.from_numpy(self.scene[:, win[0], win[1]].copy()), torch.from_numpy(self.labels[win].copy())


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Unet(nn.Module):
    def __init__(self, bands, classes, w):
        super().__init__()
        self.d1 = nn.Sequential(conv(bands, w), conv(w, w))
        self.d2 = nn.Sequential(conv(w, 2 * w), conv(2 * w, 2 * w))
        self.d3 = nn.Sequential(conv(2 * w, 4 * w), conv(4 * w, 4 * w))
        self.u2 = nn.Sequential(conv(6 * w, 2 * w), conv(2 * w, 2 * w))
        self.u1 = nn.Sequential(conv(3 * w, w), conv(w, w))
        self.head = nn.Conv2d(w, classes, 1)
        self.down = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.down(a))
        c = self.d3(self.down(b))
        b = self.u2(torch.cat((self.up(c), b), 1))
        return self.head(self.u1(torch.cat((self.up(b), a), 1)))


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    data = Tiles(args.steps * args.batch, args.size)
    loader = DataLoader(data, args.batch, shuffle=True, drop_last=True, num_workers=args.workers)  # flaw: pageable-host-copy
    model = Unet(8, 10, args.width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=device.type == "cuda")
    crit = nn.CrossEntropyLoss()
    for step, (img, mask) in enumerate(loader):
        img = img.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        mask = mask.to(device, non_blocking=True).long()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = crit(model(img), mask)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 25 == 0:
            print("step", step, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    lite = bool(int(os.environ.get("SMALL", "0")))
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=2 if lite else 16)
    p.add_argument("--size", type=int, default=32 if lite else 256)
    p.add_argument("--width", type=int, default=8 if lite else 48)
    p.add_argument("--workers", type=int, default=1 if lite else 8)
    p.add_argument("--steps", type=int, default=30 if lite else 120)
    main(p.parse_args())
