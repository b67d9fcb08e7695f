#!/usr/bin/env python
"""Integrate test particles in a rotating potential and score the recorded tracks."""
import os
import torch


def settings():
    if os.environ.get("SMALL"):
        return dict(particles=2_000, ticks=12, runs=30)
    return dict(particles=1_500_000, ticks=96, runs=60)


class Potential:
    """Logarithmic halo with a softened core."""

    def __init__(self, core=0.05):
        self.core = core

    def pull(self, pos):
        r2 = pos.square().sum(0, keepdim=True).add_(self.core)
        return pos * torch.rsqrt(r2).neg_()


def leapfrog(pot, pos, vel, dt):
    vel = torch.add(vel, pot.pull(pos), alpha=dt)
    return torch.add(pos, vel, alpha=dt), vel


def record(pot, pos, vel, ticks, dt=0.01):
    tracks = [pos]
    for _ in range(ticks - 1):
        pos, vel = leapfrog(pot, pos, vel, dt)
        tracks.append(pos)
    return torch.stack(tracks), vel


def score(tracks):
    length = (tracks[1:] - tracks[:-1]).norm(dim=1).sum(0)
    reach = tracks.square().sum(1).amax(0).sqrt_()
    return torch.stack((length.mean(), reach.mean()))


@torch.inference_mode()
def simulate():
    cfg = settings()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gen = torch.Generator(device=device).manual_seed(99)
    pot = Potential()
    results = []
    pos = torch.randn(2, cfg["particles"], device=device, generator=gen)
    vel = torch.empty_like(pos)
    for run in range(cfg["runs"]):
        vel.normal_(0, 0.3, generator=gen)
        tracks, _ = record(pot, pos, vel, cfg["ticks"])
        results.append(score(tracks))
        if run % 20 == 19:
            print("run", run + 1)
    table = torch.stack(results).cpu()
    print("length %.4f  reach %.4f" % tuple(table.mean(0).tolist()))


if __name__ == "__main__":
    simulate()
