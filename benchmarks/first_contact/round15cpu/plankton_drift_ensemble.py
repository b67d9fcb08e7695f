"""Plankton drifts through a double gyre; every release gives tracks and their spread."""
import math
import os
import torch

TINY = os.environ.get("TINY") == "1"
FLOATS = 60 if TINY else 3000
HOURS = 10 if TINY else 110
RELEASES = 3 if TINY else 180


def gyre(where, hour):
    x, y, depth = where.unbind(0)
    a = 0.25 * math.sin(0.2 * math.pi * hour / 24)
    f = a * x * x + (1 - 2 * a) * x
    u = -math.pi * 0.1 * torch.sin(math.pi * f) * torch.cos(math.pi * y)
    v = math.pi * 0.1 * torch.cos(math.pi * f) * torch.sin(math.pi * y)
    return torch.stack((u, v, 0.01 - 0.02 * depth))


class Release:
    def __init__(self, seed):
        self.dice = torch.Generator().manual_seed(seed)
        self.where = torch.rand(3, FLOATS, generator=self.dice)

    def hourly(self):
        for hour in range(HOURS):
            kick = torch.randn(3, FLOATS, generator=self.dice)
            self.where = self.where + 0.1 * gyre(self.where, hour) + 0.004 * kick
            yield self.where

    def journey(self):
        track = self.where[None]  # flaw: cat-in-loop
        for place in self.hourly():
            track = torch.vstack((track, place[None]))  # flaw: cat-in-loop
        return track


@torch.inference_mode()
def campaign():
    reach = torch.zeros(3)
    for seed in range(RELEASES):
        track = Release(seed).journey()
        reach += (track[-1] - track[0]).abs().mean(1) + track.std(0).mean(1)
        if seed % 20 == 0:
            print(seed, [round(r, 4) for r in (reach / (seed + 1)).tolist()])
    return reach / RELEASES


print([round(r, 4) for r in campaign().tolist()])
