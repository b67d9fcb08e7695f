"""Segments a large raster tile by tile and keeps the class map on the device."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
BANDS, CLASSES = 8, 16
TILE, PER_BATCH, BATCHES, WIDTH, DEPTH, SIDE = (16, 2, 30, 8, 1, 64) if os.environ.get("SMALL") else (256, 64, 90, 96, 10, 2048)


class Segmenter(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()

        def conv(i: int, o: int, stride: int = 1) -> list[nn.Module]:
            return [nn.Conv2d(i, o, 3, stride, 1), nn.ReLU(inplace=True)]

        self.net = nn.Sequential(
            *conv(BANDS, width, 2),
            *conv(width, 2 * width, 2),
            *[layer for _ in range(depth) for layer in conv(2 * width, 2 * width)],
        )
        self.head = nn.Conv2d(2 * width, CLASSES, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.net(x))


class TileFeed:
    """Gathers overlapping tiles of the raster into batches."""

    def __init__(self, raster: np.ndarray, tile: int, count: int) -> None:
        self.raster, self.tile, self.count = raster, tile, count
        self.shape = (count, BANDS, tile, tile)

    def corners(self, batches: int) -> np.ndarray:
        rng = np.random.default_rng(9)
        return rng.integers(0, self.raster.shape[1] - self.tile, (batches, self.count, 2))

    def fill(self, out: np.ndarray, corners: np.ndarray) -> None:
        for slot, (y, x) in zip(out, corners):
            slot[...] = self.raster[:, y : y + self.tile, x : x + self.tile]

    def __call__(self, batches: int) -> Iterator[Tensor]:
        for corners in self.corners(batches):
            batch = np.empty(self.shape, np.uint8)
            self.fill(batch, corners)
            yield torch.from_numpy(batch).to(DEVICE)  # flaw: pageable-host-copy


@torch.inference_mode()
def main() -> None:
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    raster = np.random.default_rng(1).integers(0, 256, (BANDS, SIDE, SIDE), dtype=np.uint8)
    net = Segmenter(WIDTH, DEPTH).to(DEVICE, torch.bfloat16, memory_format=torch.channels_last).eval()
    area = torch.zeros(CLASSES, device=DEVICE)
    for tiles in TileFeed(raster, TILE, PER_BATCH)(BATCHES):
        scores = net(tiles.to(torch.bfloat16, memory_format=torch.channels_last))
        area += scores.softmax(1, dtype=torch.float32).sum((0, 2, 3))
    print("share of the largest class", round((area.max() / area.sum()).item(), 4))


if __name__ == "__main__":
    main()
