import argparse
import math
import os

import torch
from torch import nn, optim
from torch.nn.functional import l1_loss, pixel_shuffle, pixel_unshuffle, relu
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

TINY = bool(os.environ.get("SMALL"))


def dct_matrix(n=8):
    k = torch.arange(n).float()
    m = torch.cos(math.pi / n * (k[None] + 0.5) * k[:, None]) * math.sqrt(2 / n)
    m[0] /= math.sqrt(2)
    return m


class Degraded(IterableDataset):
    """Endless pairs of a block-quantised picture and the original."""

    def __init__(self, side, total):
        self.side, self.total = side, total
        self.dct = dct_matrix()
        g = torch.Generator().manual_seed(1)
        self.album = [self.picture(g) for _ in range(4 if TINY else 48)]
        self.table = 4 + 2 * torch.arange(8.0)[:, None] + 2 * torch.arange(8.0)

    def quantise(self, img, quality):
        c, h, w = img.shape
        blocks = img.view(c, h // 8, 8, w // 8, 8).transpose(2, 3)
        coded = self.dct @ blocks @ self.dct.t()
        coded = torch.round(coded / (self.table * quality)) * (self.table * quality)
        return (self.dct.t() @ coded @ self.dct).transpose(2, 3).reshape(c, h, w)

    def picture(self, g):
        layers = [torch.rand(3, self.side >> s, self.side >> s, generator=g) for s in range(4)]
        img = sum(
            nn.functional.interpolate(layer[None], size=self.side, mode="bicubic" if s else "nearest")[0]
            for s, layer in enumerate(layers)
        )
        return img * 63.0

    def __iter__(self):
        info = get_worker_info()
        share, first = (info.num_workers, info.id) if info else (1, 0)
        for i in range(first, self.total, share):
            g = torch.Generator().manual_seed(i)
            clean = self.album[i % len(self.album)]
            yield self.quantise(clean, 1 + 4 * torch.rand((), generator=g)), clean


class Repair(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.inp = nn.Conv2d(12, width, 3, padding=1)
        self.mid = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.out = nn.Conv2d(width, 12, 3, padding=1)

    def forward(self, x):
        h = relu(self.inp(pixel_unshuffle(x, 2)))
        for conv in self.mid:
            h = relu(h + conv(h))
        return x + pixel_shuffle(self.out(h), 2)


def options():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=2 if TINY else 32)
    ap.add_argument("--side", type=int, default=16 if TINY else 160)
    ap.add_argument("--width", type=int, default=8 if TINY else 160)
    ap.add_argument("--depth", type=int, default=2 if TINY else 8)
    ap.add_argument("--steps", type=int, default=30 if TINY else 70)
    ap.add_argument("-j", "--jobs", type=int, default=2 if TINY else 12)
    return ap.parse_args()


def stream(opt, device):
    source = Degraded(opt.side, opt.batch * opt.steps)
    loader = DataLoader(source, opt.batch, num_workers=opt.jobs, pin_memory=device.type == "cuda", prefetch_factor=4)
    for pair in loader:
        yield [t.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last) for t in pair]


def main():
    opt = options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    net = Repair(opt.width, opt.depth).to(device, memory_format=torch.channels_last)
    adam = optim.Adam(net.parameters(), 2e-4, fused=True)
    total = torch.zeros((), device=device)
    for bad, good in stream(opt, device):
        with torch.autocast(device.type, torch.bfloat16):
            fixed = net(bad / 255)
        loss = l1_loss(fixed.float(), good / 255)
        adam.zero_grad()
        loss.backward()
        adam.step()
        total += loss.detach()
    print(f"mean l1 {total.item() / opt.steps:.4f}")


if __name__ == "__main__":
    main()
