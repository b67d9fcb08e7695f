"""Density estimation with affine couplings."""

import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = bool(os.environ.get("SMALL"))


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        half = dim // 2
        self.net = nn.Sequential(
            nn.Linear(half, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 2 * half)
        )

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).float().chunk(2, -1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat((b, a) if self.flip else (a, b), -1), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, dim, hidden, depth):
        super().__init__()
        self.dim = dim
        self.steps = nn.ModuleList(Coupling(dim, hidden, bool(i % 2)) for i in range(depth))

    def forward(self, x):
        logdet = x.new_zeros(len(x))
        for step in self.steps:
            x, ld = step(x)
            logdet = logdet + ld
        return 0.5 * x.square().sum(-1) - logdet + 0.5 * self.dim * math.log(2 * math.pi)


def sampler(batch, dim, device):
    mix = torch.randn(dim, dim, device=device) / dim**0.5
    while True:
        z = torch.randn(batch, dim, device=device)
        yield F.softplus(z @ mix)


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    dim, hidden, depth, batch, steps = (8, 16, 2, 8, 30) if SMALL else (256, 2048, 6, 16384, 80)
    flow = Flow(dim, hidden, depth).to(device)
    nll = torch.compile(flow, disable=not cuda)
    opt = torch.optim.Adam(flow.parameters(), 1e-4, fused=True)
    trace = torch.zeros(steps, device=device)
    for step, x in zip(range(steps), sampler(batch, dim, device)):
        with torch.autocast(device.type, torch.bfloat16):
            loss = nll(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        trace[step] = loss.detach()
    print("nats per dimension", trace[-5:].mean().item() / dim)


if __name__ == "__main__":
    main()
