"""Segments lagoons in multispectral tiles with a light encoder-decoder."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class TileSpec:
    bands: int = 8
    side: int = 64
    classes: int = 3
    width: int = 32
    stages: int = 6


def tile_batch(n: int, spec: TileSpec, gen: torch.Generator) -> tuple[Tensor, Tensor]:
    """Smooth random relief; below a level is water, above another one is forest."""
    coarse = torch.randn(n, 1, 6, 6, generator=gen)
    relief = F.interpolate(coarse, size=(spec.side, spec.side), mode="bicubic", align_corners=False)
    cover = (relief > -0.3).long() + (relief > 0.5).long()
    tone = torch.randn(spec.classes, spec.bands, generator=torch.Generator().manual_seed(2))
    bands = tone[cover.squeeze(1)].permute(0, 3, 1, 2)
    return bands + 0.7 * torch.randn(bands.shape, generator=gen), cover.squeeze(1)


class Surroundings(nn.Module):
    """A depthwise convolution over the surroundings of each pixel, with a residual connection."""

    def __init__(self, width: int):
        super().__init__()
        self.look = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x: Tensor) -> Tensor:
        y = x.contiguous(memory_format=torch.channels_last)  # flaw: layout-churn
        y = F.relu(self.look(y))
        return x + y.contiguous()  # flaw: layout-churn


class Segmenter(nn.Module):
    def __init__(self, spec: TileSpec):
        super().__init__()
        self.enter = nn.Conv2d(spec.bands, spec.width, 4, stride=2, padding=1)
        self.stages = nn.Sequential(*[Surroundings(spec.width) for _ in range(spec.stages)])
        self.leave = nn.Conv2d(spec.width, spec.classes, 1)

    def forward(self, tiles: Tensor) -> Tensor:
        coarse = self.leave(self.stages(self.enter(tiles)))
        return F.interpolate(coarse, scale_factor=2, mode="nearest")


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    def pop(self) -> float:
        mean = self.total / max(self.count, 1)
        self.total, self.count = 0.0, 0
        return mean


def run(steps: int, batch: int, spec: TileSpec) -> None:
    gen = torch.Generator().manual_seed(24)
    tiles, cover = tile_batch(128, spec, gen)
    tiles = tiles.contiguous(memory_format=torch.channels_last)
    model = Segmenter(spec).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    loss_mean, accuracy = Average(), Average()
    for step in range(1, steps + 1):
        rows = torch.randint(len(tiles), (batch,), generator=gen)
        scores = model(tiles[rows])
        loss = F.cross_entropy(scores, cover[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_mean.add(loss.item())
        if step % 10 == 0:
            accuracy.add((scores.argmax(1) == cover[rows]).float().mean().item())
        if step % (steps // 4) == 0:
            print(f"step {step}: loss {loss_mean.pop():.4f}, pixel accuracy {accuracy.pop():.3f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(23)
    run(steps=600, batch=12, spec=TileSpec())
