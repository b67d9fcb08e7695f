# Gray-Scott patterns on a torus; no gradients anywhere.
import argparse
import os

import torch

tiny = os.environ.get("TINY") == "1"
parser = argparse.ArgumentParser()
parser.add_argument("--grid", type=int, default=48 if tiny else 8192)
parser.add_argument("--frames", type=int, default=4 if tiny else 1000)
parser.add_argument("--per-frame", type=int, default=4 if tiny else 32)
parser.add_argument("--feed", type=float, default=0.037)
parser.add_argument("--kill", type=float, default=0.06)
args = parser.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"


def laplace(f):
    return f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1) - 4 * f


@torch.compile(disable=tiny)
def react(a, b):
    burn = a * b * b
    return (a + 0.16 * laplace(a) - burn + args.feed * (1 - a),
            b + 0.08 * laplace(b) + burn - (args.feed + args.kill) * b)


class Census:
    """Mean cover of the second species, one number per frame, on the device."""

    def __init__(self, frames):
        self.values = torch.empty(frames, device=device)
        self.at = 0

    def __call__(self, b):
        torch.mean(b, (0, 1), out=self.values[self.at])
        self.at += 1

    def report(self):
        first, last = self.values[[0, -1]].tolist()
        return f"cover first {first:.5f} last {last:.5f}"


def seeded(n):
    a = torch.ones(n, n, device=device)
    b = torch.zeros(n, n, device=device)
    g = torch.Generator(device).manual_seed(12)
    spots = torch.rand(n // 8, n // 8, device=device, generator=g) < 0.15
    spots = spots.repeat_interleave(8, 0).repeat_interleave(8, 1)
    return a.masked_fill_(spots, 0.5), b.masked_fill_(spots, 0.25)


def film():
    a, b = seeded(args.grid)
    while True:
        for _ in range(args.per_frame):
            a, b = react(a, b)
        yield b


with torch.inference_mode():
    census = Census(args.frames)
    for _, b in zip(range(args.frames), film()):
        census(b)
    print(census.report())
