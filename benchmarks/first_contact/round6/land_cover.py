import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    """Twelve-band patches with one of 24 cover classes."""

    def __init__(self, n, size, bank=96):
        rng = np.random.default_rng(0)
        self.n = n
        self.bank = rng.integers(0, 4096, (bank, 12, size, size), dtype=np.int16)
        self.cover = rng.integers(0, 24, bank)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        j = i % len(self.bank)
        patch = self.bank[j] if i & 1 else self.bank[j, :, ::-1].copy()
        return torch.from_numpy(patch), int(self.cover[j])


class Gate(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.squeeze = nn.Linear(ch, ch // 4)
        self.excite = nn.Linear(ch // 4, ch)

    def forward(self, x):
        w = F.relu(self.squeeze(x.mean((2, 3))))
        w = torch.sigmoid(self.excite(w))[:, :, None, None]
        return (x * w).contiguous()  # flaw: layout-churn


class Residual(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.a = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.b = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(ch), nn.BatchNorm2d(ch)
        self.gate = Gate(ch)

    def forward(self, x):
        h = self.gate(F.relu(self.na(self.a(x)), inplace=True))
        return F.relu(x + self.nb(self.b(h)), inplace=True)


def build(width):
    layers = [nn.Conv2d(12, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
    for stage in range(3):
        ch = width << stage
        layers += [Residual(ch), Residual(ch)]
        if stage < 2:
            layers += [nn.Conv2d(ch, 2 * ch, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * ch), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width * 4, 24))


def main():
    tiny = os.environ.get("SMALL") is not None
    ap = argparse.ArgumentParser()
    ap.add_argument("--size", type=int, default=16 if tiny else 96)
    ap.add_argument("--batch", type=int, default=4 if tiny else 128)
    ap.add_argument("--width", type=int, default=8 if tiny else 96)
    ap.add_argument("--steps", type=int, default=30 if tiny else 80)
    ap.add_argument("--workers", type=int, default=2 if tiny else 12)
    opt = ap.parse_args()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)

    net = build(opt.width).to(device, memory_format=torch.channels_last)
    sgd = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True)
    loader = DataLoader(
        Patches(opt.batch * opt.steps, opt.size), opt.batch, num_workers=opt.workers, pin_memory=cuda, prefetch_factor=3
    )
    hits = torch.zeros((), device=device)
    for it, (x, y) in enumerate(loader):
        x = x.to(device, non_blocking=True).to(torch.bfloat16, memory_format=torch.channels_last)
        y = y.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            out = net(x / 4096)
            loss = F.cross_entropy(out, y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        hits += (out.argmax(1) == y).sum()
        if it % 30 == 29:
            print(it + 1, hits.item() / ((it + 1) * opt.batch))


if __name__ == "__main__":
    main()
