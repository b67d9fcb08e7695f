"""Frequency sweep of a wafer of resonators: which ones jump to the upper branch, and when?"""
import argparse
import logging
import math
import time

import torch

from resonator_bank_lib import Beam, Leapfrog


class Sweep:
    """The drive's frequency rises slowly; its phase is integrated in double precision on the host."""

    def __init__(self, low, high, blocks, rounds, dt, push):
        rate = torch.linspace(low, high, blocks * rounds, dtype=torch.float64)
        self.drive = (push * torch.cos((rate * dt).cumsum(0))).float().view(blocks, rounds)

    def to(self, device):
        self.drive = self.drive.to(device)
        return self

    def __iter__(self):
        return iter(self.drive)


@torch.no_grad()
def run(args):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = torch.Generator(device).manual_seed(args.seed)
    beam = Beam()
    x = 0.02 * torch.randn(args.resonators, device=device, generator=rng)
    v = 0.02 * torch.randn(args.resonators, device=device, generator=rng)
    advance = torch.compile(Leapfrog(beam, args.rounds).advance, dynamic=False)
    sweep = Sweep(0.9, 1.6, args.blocks, args.rounds, beam.dt, 0.08).to(device)
    advance(x, v, sweep.drive[0])

    begin = time.perf_counter()
    for number, drives in enumerate(sweep, 1):
        x, v = advance(x, v, drives)
        if number % args.report == 0:
            reach = torch.hypot(x, v)
            took = (time.perf_counter() - begin) / args.report * 1e3
            print(f"block {number:5d}: amplitude {reach.mean().item():.6f}, {(reach > 1).sum().item()} up, {took:.2f} ms", flush=True)
            begin = time.perf_counter()
    assert math.isfinite(x.sum().item())


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("--resonators", type=int, default=1 << 21)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=1800)
    parser.add_argument("--report", type=int, default=200)
    parser.add_argument("--seed", type=int, default=90)
    run(parser.parse_args())
