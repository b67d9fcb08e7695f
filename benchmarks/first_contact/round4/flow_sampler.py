"""Draws samples from a conditional flow over molecular descriptors by integrating its velocity field."""
import argparse
import os
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)
        self.act = nn.SiLU()

    def forward(self, h, cond):
        return h + self.outer(self.act(self.inner(self.norm(h + cond))))


class Velocity(nn.Module):
    def __init__(self, dim, width, depth):
        super().__init__()
        self.read = nn.Linear(dim, width)
        self.when = nn.Linear(64, width)
        self.register_buffer("freq", torch.exp(torch.linspace(0, 5, 32)))
        self.blocks = nn.ModuleList([Residual(width) for _ in range(depth)])
        self.write = nn.Linear(width, dim)

    def forward(self, x, t, label):
        angle = t * self.freq
        cond = self.when(torch.cat((angle.sin(), angle.cos()))) + label
        h = self.read(x)
        for block in self.blocks:
            h = block(h, cond)
        return self.write(h)


def heun(field, x, label, grid):
    for t0, t1 in zip(grid, grid[1:]):
        dt = t1 - t0
        v0 = field(x, t0, label)
        v1 = field(x + dt * v0, t1, label)
        x = x + 0.5 * dt * (v0 + v1)
    return x


def parse():
    quick = os.environ.get("SMALL") == "1"
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--width", type=int, default=32 if quick else 256)
    p.add_argument("--depth", type=int, default=2 if quick else 8)
    p.add_argument("--samples", type=int, default=16 if quick else 512)
    p.add_argument("--solver-steps", type=int, default=3 if quick else 12)
    p.add_argument("--batches", type=int, default=30 if quick else 150)
    return p.parse_args()


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = Velocity(args.dim, args.width, args.depth).to(device, torch.bfloat16).eval()  # flaw: launch-bound
    labels = torch.randn(10, args.width, device=device, dtype=torch.bfloat16)
    grid = torch.linspace(0, 1, args.solver_steps + 1, device=device, dtype=torch.bfloat16).unbind()
    mean = torch.zeros(args.dim, device=device)
    with torch.inference_mode():
        for n in range(args.batches):
            x = torch.randn(args.samples, args.dim, device=device, dtype=torch.bfloat16)
            out = heun(net, x, labels[n % 10], grid)  # flaw: launch-bound
            mean.lerp_(out.float().mean(0), 1 / (n + 1))
    print("descriptor mean", mean[:4].tolist())


if __name__ == "__main__":
    main()
