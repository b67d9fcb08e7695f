"""Karst springs on thermal images of hillsides: batches of bytes from workers, a compiled channels-last network."""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.benchmark = True


class Hillsides(Dataset):
    """One item is a batch: crops of large images, all in one array of bytes that the workers share."""

    def __init__(self, batches, size, side):
        rng = np.random.default_rng(7)
        self.images = rng.integers(0, 160, (24, 1024, 1024, 4), dtype=np.uint8)
        self.springs = np.zeros((24, 1024, 1024), dtype=np.uint8)
        for image, mask in zip(self.images, self.springs):
            for row, column in rng.integers(20, 1000, (60, 2)):
                image[row - 12 : row + 12, column - 6 : column + 18] += 60
                mask[row - 12 : row + 12, column - 6 : column + 18] = 1
        self.batches, self.size, self.side = batches, size, side

    def __len__(self):
        return self.batches

    def __getitem__(self, number):
        rng = np.random.default_rng(number)
        side = self.side
        places = np.stack([rng.integers(0, 24, self.size), *rng.integers(0, 1024 - side, (2, self.size))], 1)
        pixels = np.stack([self.images[i, r : r + side, c : c + side] for i, r, c in places])
        springs = np.stack([self.springs[i, r : r + side, c : c + side] for i, r, c in places])
        return torch.from_numpy(pixels), torch.from_numpy(springs)


def unit(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class SpringNet(nn.Module):
    def __init__(self, base=64):
        super().__init__()
        self.stem = unit(4, base, 2)
        self.fine = nn.Sequential(unit(base, base), unit(base, base))
        self.middle = nn.Sequential(unit(base, 2 * base, 2), unit(2 * base, 2 * base), unit(2 * base, 2 * base))
        self.deep = nn.Sequential(unit(2 * base, 4 * base, 2), unit(4 * base, 4 * base), unit(4 * base, 4 * base))
        self.join1, self.join0 = unit(6 * base, 2 * base), unit(3 * base, base)
        self.head = nn.Conv2d(base, 4, 1)

    def forward(self, pixels):
        x = pixels.permute(0, 3, 1, 2).to(torch.bfloat16) / 64 - 2
        fine = self.fine(self.stem(x))
        middle = self.middle(fine)
        deep = self.deep(middle)
        y = self.join1(torch.cat([F.interpolate(deep, scale_factor=2), middle], 1))
        y = self.join0(torch.cat([F.interpolate(y, scale_factor=2), fine], 1))
        return F.pixel_shuffle(self.head(y), 2)[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--workers", type=int, default=10)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(5)

    loader = DataLoader(
        Hillsides(args.batches, args.size, args.side),
        batch_size=None,
        num_workers=args.workers,
        prefetch_factor=4,
        pin_memory=device == "cuda",
    )
    model = SpringNet().to(device, memory_format=torch.channels_last)
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    began = time.perf_counter()
    for step, (pixels, springs) in enumerate(loader, 1):
        pixels = pixels.to(device, non_blocking=True)
        springs = springs.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = compiled(pixels)
        loss = F.binary_cross_entropy_with_logits(scores.float(), springs.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"batch {step}: loss {loss.item():.4f}, {(time.perf_counter() - began) / step * 1e3:.1f} ms each")


if __name__ == "__main__":
    main()
