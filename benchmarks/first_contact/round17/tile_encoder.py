"""Describe satellite tiles with a convolutional encoder (no training)."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = bool(os.environ.get("TINY"))


class Tiles(Dataset):
    def __init__(self, count, size):
        self.count = count
        self.pool = torch.randint(0, 256, (512, 4, size, size), dtype=torch.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.pool[i % 512]


class Unit(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.c1 = nn.Conv2d(a, b, 3, stride, 1)
        self.c2 = nn.Conv2d(b, b, 3, 1, 1)
        self.s = nn.Conv2d(a, b, 1, stride)

    def forward(self, x):
        return torch.relu_(self.c2(torch.relu_(self.c1(x))).add_(self.s(x)))


def encoder(width):
    return nn.Sequential(
        nn.Conv2d(4, width, 4, 4), Unit(width, width, 1), Unit(width, 2 * width, 2), Unit(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )


@torch.inference_mode()
def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    rows, steps, size = (4, 3, 32) if TINY else (96, 800, 256)
    torch.manual_seed(0)
    loader = DataLoader(
        Tiles(rows * steps, size), rows, num_workers=0 if TINY else 14, pin_memory=cuda,
        prefetch_factor=None if TINY else 3,
    )
    net = encoder(8 if TINY else 320).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    total = torch.zeros((), device=device)
    for tiles in loader:
        x = tiles.to(device, non_blocking=True)
        x = x.to(torch.bfloat16, memory_format=torch.channels_last).div_(255)
        total += net(x).float().mean()
    print(f"mean code {total.item() / steps:.4f}")


if __name__ == "__main__":
    main()
