"""PointPillars-like lidar detector: pillar features are scattered to a bird's-eye-view map."""
from __future__ import annotations

import argparse
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Grid(NamedTuple):
    ny: int
    nx: int
    channels: int


class Sweep(NamedTuple):
    points: torch.Tensor  # (pillars, points per pillar, 8)
    cell: torch.Tensor  # (pillars,) index into batch * ny * nx
    target: torch.Tensor  # (batch, anchors, ny / 2, nx / 2)


class PillarEncoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.linear = nn.Linear(8, channels, bias=False)
        self.norm = nn.LayerNorm(channels)

    def forward(self, points):
        peak = self.linear(points).amax(dim=1)
        return F.relu(self.norm(peak))


class ScatterToMap(nn.Module):
    """Writes each pillar's feature into its cell; empty cells stay zero."""

    def __init__(self, grid: Grid):
        super().__init__()
        self.grid = grid

    def forward(self, features, cell, batch):
        g = self.grid
        canvas = torch.zeros(batch * g.ny * g.nx, g.channels).to(features)  # flaw: tensor-made-on-host
        canvas.index_copy_(0, cell, features)
        return canvas.view(batch, g.ny, g.nx, g.channels).permute(0, 3, 1, 2)


def stage(cin, cout, depth, stride):
    layers = []
    for i in range(depth):
        layers += [nn.Conv2d(cin if i == 0 else cout, cout, 3, stride if i == 0 else 1, 1, bias=False),
                   nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Detector(nn.Module):
    def __init__(self, grid: Grid, anchors=6):
        super().__init__()
        c = grid.channels
        self.encoder = PillarEncoder(c)
        self.scatter = ScatterToMap(grid)
        self.stage1 = stage(c, 2 * c, 5, 2)
        self.stage2 = stage(2 * c, 4 * c, 5, 2)
        self.up = nn.ConvTranspose2d(4 * c, 2 * c, 2, 2)
        self.head = nn.Conv2d(4 * c, anchors, 1)

    def forward(self, sweep: Sweep):
        bev = self.scatter(self.encoder(sweep.points), sweep.cell, sweep.target.shape[0])
        a = self.stage1(bev)
        b = self.up(self.stage2(a))
        return self.head(torch.cat([a, b], 1))


def synthetic_sweeps(count, batch, grid, pillars, points, device):
    gen = torch.Generator(device).manual_seed(0)
    cells = batch * grid.ny * grid.nx
    for _ in range(count):
        yield Sweep(
            torch.randn(pillars, points, 8, device=device, generator=gen, dtype=torch.float32),
            torch.randperm(cells, device=device, generator=gen)[:pillars],
            (torch.rand(batch, 6, grid.ny // 2, grid.nx // 2, device=device, generator=gen) < 0.02).float())


def main():
    cuda = torch.cuda.is_available()
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--batch", type=int, default=8 if cuda else 2)
    p.add_argument("--side", type=int, default=256 if cuda else 16)
    p.add_argument("--channels", type=int, default=64 if cuda else 8)
    p.add_argument("--pillars", type=int, default=64_000 if cuda else 60)
    p.add_argument("--steps", type=int, default=120 if cuda else 4)
    args = p.parse_args()
    device = torch.device("cuda" if cuda else "cpu")

    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    grid = Grid(args.side, args.side, args.channels)
    model = Detector(grid).to(device, memory_format=torch.channels_last)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    sweeps = list(synthetic_sweeps(4, args.batch, grid, args.pillars, 20 if cuda else 4, device))
    losses = []
    for step in range(args.steps):
        sweep = sweeps[step % len(sweeps)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(sweep)
        loss = F.binary_cross_entropy_with_logits(logits.float(), sweep.target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    for i in range(0, args.steps, max(1, args.steps // 4)):
        print(f"step {i:4d}  loss {losses[i].item():.4f}")
    print(f"last loss {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
