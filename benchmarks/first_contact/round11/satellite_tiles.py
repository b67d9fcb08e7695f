"""Land-use classification of 4-band satellite tiles; batches are copied on a side stream."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


class Tiles(Dataset):
    """Random crops and flips of a few scenes in memory (height, width, band; uint8)."""

    def __init__(self, count, side, classes=16):
        rng = np.random.default_rng(0)
        self.count, self.side, self.classes = count, side, classes
        self.scenes = rng.integers(0, 255, (classes, 2 * side, 2 * side, 4), dtype=np.uint8)
        self.scenes //= np.arange(1, classes + 1, dtype=np.uint8)[:, None, None, None]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        y, x = rng.integers(0, self.side, 2)
        tile = self.scenes[i % self.classes, y:y + self.side, x:x + self.side]
        if i & 1:
            tile = tile[:, ::-1]
        return np.ascontiguousarray(tile), i % self.classes


class Prefetcher:
    """Copies the next batch on its own stream while the current one is used."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None

    def move(self, batch):
        if self.stream is None:
            return batch, None
        with torch.cuda.stream(self.stream):
            moved = [t.to(self.device, non_blocking=True) for t in batch]
            return moved, self.stream.record_event()

    def __iter__(self):
        waiting = None
        for batch in self.loader:
            current, waiting = waiting, self.move(batch)
            if current is not None:
                yield self.release(*current)
        if waiting is not None:
            yield self.release(*waiting)

    def release(self, tensors, event):
        if event is not None:
            main = torch.cuda.current_stream()
            main.wait_event(event)
            for t in tensors:
                t.record_stream(main)
        return tensors


class Unit(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(cout), nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False) if cin != cout else nn.Identity()

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.skip(x))


class TileNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        w = width
        self.stem = nn.Conv2d(4, w, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(w)
        self.body = nn.Sequential(Unit(w, w, 1), Unit(w, w, 1), Unit(w, 2 * w, 2), Unit(2 * w, 2 * w, 1),
                                  Unit(2 * w, 4 * w, 2), Unit(4 * w, 4 * w, 1))
        self.head = nn.Linear(4 * w, classes)

    def forward(self, tiles):
        x = tiles.permute(0, 3, 1, 2).to(torch.bfloat16) / 127.5 - 1.0
        x = F.relu(self.norm(self.stem(x)))
        return self.head(self.body(x).mean((2, 3)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=128 if CUDA else 4)
    ap.add_argument("--side", type=int, default=160 if CUDA else 16)
    ap.add_argument("--width", type=int, default=64 if CUDA else 8)
    ap.add_argument("--steps", type=int, default=250 if CUDA else 4)
    ap.add_argument("--workers", type=int, default=12 if CUDA else 0)
    args = ap.parse_args()
    device = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    net = TileNet(args.width, 16).to(device, memory_format=torch.channels_last)
    if CUDA:
        net.compile()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-5, fused=True)
    loader = DataLoader(Tiles(args.batch * args.steps, args.side), args.batch, num_workers=args.workers,
                        pin_memory=CUDA, drop_last=True, prefetch_factor=4 if args.workers else None)
    total, right = torch.zeros((), device=device), torch.zeros((), device=device)
    for tiles, labels in Prefetcher(loader, device):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = net(tiles)
            loss = F.cross_entropy(scores, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        right += (scores.detach().argmax(1) == labels).float().mean()
    print(f"mean loss {total.item() / args.steps:.4f}, accuracy {right.item() / args.steps:.3f}")


if __name__ == "__main__":
    main()
