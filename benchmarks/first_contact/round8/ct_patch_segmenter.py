"""2.5D liver segmentation: three neighbouring CT slices in, one organ mask out."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def parse():
    small = not torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--volumes", type=int, default=2 if small else 8)
    p.add_argument("--size", type=int, default=64 if small else 256)
    p.add_argument("--batch", type=int, default=2 if small else 16)
    p.add_argument("--epochs", type=int, default=1 if small else 3)
    p.add_argument("--width", type=int, default=8 if small else 48)
    p.add_argument("--device", default="cpu" if small else "cuda")
    return p.parse_args()


class CTSlices(Dataset):
    """Hounsfield volumes in memory; windowed and augmented when a slice is read."""

    def __init__(self, volumes, size, depth=48):
        rng = np.random.default_rng(7)
        base = rng.integers(-900, 1200, (depth, size, size), dtype=np.int16)
        self.scans = [np.roll(base, i * 3, axis=2) for i in range(volumes)]
        self.masks = [(np.abs(s) < 300).astype(np.uint8) for s in self.scans]
        self.index = [(v, z) for v in range(volumes) for z in range(1, depth - 1)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        v, z = self.index[i]
        rng = np.random.default_rng(i)
        x = self.scans[v][z - 1 : z + 2].astype(np.float32)
        y = self.masks[v][z]
        x = np.clip((x + 160.0) / 400.0, 0.0, 1.0)
        x = x ** np.float32(rng.uniform(0.8, 1.25))
        x = x + rng.normal(0, 0.02, x.shape).astype(np.float32)
        if rng.random() < 0.5:
            x, y = x[:, :, ::-1], y[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(np.ascontiguousarray(y))


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        c = [width, width * 2, width * 4, width * 8]
        self.down = nn.ModuleList([double_conv(a, b) for a, b in zip([3, *c[:-1]], c)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(c[:-1], c[1:])])
        self.merge = nn.ModuleList([double_conv(2 * a, a) for a in c[:-1]])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for i in (2, 1, 0):
            x = self.merge[i](torch.cat([self.up[i](x), skips[i]], dim=1))
        return self.out(x)


def run(args):
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device(args.device)
    data = CTSlices(args.volumes, args.size)
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True, pin_memory=device.type == "cuda")  # flaw: loader-without-workers
    net = UNet(args.width).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    for epoch in range(args.epochs):
        total = torch.zeros((), device=device)
        for x, y in loader:
            x = x.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True).float()[:, None]
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = net(x)
            loss = F.binary_cross_entropy_with_logits(logits.float(), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch}  bce {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    run(parse())
