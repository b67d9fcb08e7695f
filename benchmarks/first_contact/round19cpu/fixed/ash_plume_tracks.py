"""Forward trajectories of volcanic ash: parcels from several vents drift in a wind field that a small network
refines, and the tracks are summarised as exposure maps for a set of airports."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--cases", type=int, default=400)
    p.add_argument("--parcels", type=int, default=5000)
    p.add_argument("--hours", type=int, default=60)
    p.add_argument("--grid", type=int, default=96)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


class Subgrid(nn.Module):
    """Adds the wind that the coarse analysis does not resolve."""

    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.SiLU(), nn.Linear(width, 3))

    def forward(self, parcels, wind):
        return 0.02 * self.layers(torch.cat([parcels, wind], dim=1))


def analysis(grid, generator):
    """A smooth wind analysis: 3 components on a plane, coarse noise brought to the full grid."""
    coarse = torch.randn(1, 3, 8, 8, generator=generator)
    field = F.interpolate(coarse, size=(grid, grid), mode="bicubic", align_corners=True)
    field[:, 0] += 0.8
    return 0.03 * field


def wind_at(field, parcels):
    found = F.grid_sample(field, parcels[None, None, :, :2], padding_mode="border", align_corners=True)
    return found[0, :, 0].T


def release(count, generator):
    vent = 0.5 * torch.rand(1, 2, generator=generator) - 0.75
    spread = 0.03 * torch.randn(count, 2, generator=generator)
    height = 0.2 + 0.6 * torch.rand(count, 1, generator=generator)
    return torch.cat([vent + spread, height], dim=1)


class Tracker:
    def __init__(self, subgrid, field, fall):
        self.subgrid, self.field, self.fall = subgrid, field, fall

    def hour(self, parcels):
        wind = wind_at(self.field, parcels)
        moved = parcels + wind + self.subgrid(parcels, wind)
        moved[:, 2].sub_(self.fall).clamp_(min=0.0)
        return moved

    def hours(self, parcels, count):
        """(count + 1, parcels, 3)"""
        tracks = [parcels]
        for _ in range(count):
            parcels = self.hour(parcels)
            tracks.append(parcels)
        return torch.stack(tracks)


def exposure(tracks, airports, radius=0.15):
    """Hours during which any share of the ash is near each airport, and the peak share."""
    every = tracks[::4, ::8, :2]
    near = torch.cdist(every, airports.expand(len(every), -1, -1)) < radius
    share = near.float().mean(1)
    return (share > 0.01).sum(0), share.amax(0)


@torch.inference_mode()
def main():
    args = parse()
    generator = torch.Generator().manual_seed(args.seed)
    torch.manual_seed(args.seed)
    subgrid = Subgrid().eval()
    airports = 2 * torch.rand(20, 2, generator=generator) - 1
    worst = torch.zeros(len(airports))
    for case in range(args.cases):
        tracker = Tracker(subgrid, analysis(args.grid, generator), fall=0.004)
        parcels = release(args.parcels, generator)
        hours, peak = exposure(tracker.hours(parcels, args.hours), airports)
        worst = torch.maximum(worst, peak)
        if case % 60 == 0:
            print(f"case {case:4d}  airports closed {int((hours > 2).sum()):2d}  worst share {worst.max():.3f}",
                  flush=True)
    print("expected order of concern:", worst.argsort(descending=True)[:5].tolist())


if __name__ == "__main__":
    main()
