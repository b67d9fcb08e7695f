"""Tumour map of a whole slide: tiles are streamed from memory, classified and put into a heat map."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class SlideTiles(IterableDataset):
    """Batches of tiles, row by row; each worker takes every n-th batch."""

    def __init__(self, rows, cols, tile, batch):
        rng = np.random.default_rng(0)
        self.region = rng.integers(0, 256, (4 * tile, 4 * tile, 3), dtype=np.uint8)
        self.rows, self.cols, self.tile, self.batch = rows, cols, tile, batch

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        total, t = self.rows * self.cols, self.tile
        for start in range(first * self.batch, total, step * self.batch):
            index = np.arange(start, min(start + self.batch, total))
            tiles = np.empty((len(index), 3, t, t), dtype=np.uint8)
            for n, i in enumerate(index):
                y, x = (i // self.cols) % 4 * t, (i % self.cols) % 4 * t
                tiles[n] = self.region[y : y + t, x : x + t].transpose(2, 0, 1)
            yield torch.from_numpy(tiles), torch.from_numpy(index)


class Inception(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        q = cout // 4
        self.one = nn.Conv2d(cin, q, 1)
        self.three = nn.Sequential(nn.Conv2d(cin, q, 1), nn.ReLU(inplace=True), nn.Conv2d(q, 2 * q, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(cin, q, 1), nn.ReLU(inplace=True), nn.Conv2d(q, q, 5, padding=2))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(torch.cat([self.one(x), self.three(x), self.five(x)], dim=1))


def build(width, classes=4):
    return nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1),
        Inception(width, 4 * width), Inception(4 * width, 4 * width), nn.MaxPool2d(2),
        Inception(4 * width, 8 * width), Inception(8 * width, 8 * width), nn.MaxPool2d(2),
        Inception(8 * width, 8 * width), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes),
    )  # fmt: skip


@torch.inference_mode()
def tumour_map(model, loader, rows, cols, device):
    heat = torch.zeros(rows * cols, device=device)
    for tiles, index in loader:
        tiles = tiles.to(device, non_blocking=True).to(torch.bfloat16, memory_format=torch.channels_last)
        index = index.to(device, non_blocking=True)
        heat[index] = 1 - model(tiles.sub_(128).div_(64)).float().softmax(dim=1)[:, 0]
    return heat.view(rows, cols).cpu()


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200 if gpu else 4)
    parser.add_argument("--cols", type=int, default=256 if gpu else 4)
    parser.add_argument("--tile", type=int, default=224 if gpu else 32)
    parser.add_argument("--batch", type=int, default=256 if gpu else 4)
    parser.add_argument("--workers", type=int, default=12 if gpu else 1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if gpu else "cpu")
    loader = DataLoader(
        SlideTiles(args.rows, args.cols, args.tile, args.batch),
        batch_size=None,
        num_workers=args.workers,
        pin_memory=gpu,
        prefetch_factor=4,
    )
    model = build(128 if gpu else 8).to(device, torch.bfloat16, memory_format=torch.channels_last).eval()
    heat = tumour_map(model, loader, args.rows, args.cols, device)
    print(f"tumour in {(heat > 0.75).float().mean().item():.1%} of {heat.numel()} tiles")


if __name__ == "__main__":
    main()
