import math
import os
from functools import partial

import torch
from torch import nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = bool(os.environ.get("SMALL"))
WALKERS = 64 if SMALL else 1024
INNER, OUTER = (3, 30) if SMALL else (60, 120)


class Score(nn.Module):
    """A little score network for a mixture on a ring."""

    def __init__(self, width=32 if SMALL else 256):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 8),
        )
        self.register_buffer("freq", torch.randn(8, 32) * 2)

    def forward(self, x):
        phase = x @ self.freq
        return self.net(torch.cat((phase.sin(), phase.cos()), -1))


def drift(net, x):
    radius = x[:, :2].norm(dim=1, keepdim=True)
    pull = torch.zeros_like(x)
    pull[:, :2] = x[:, :2] * (1 / radius - 1)
    return net(x.bfloat16()).float() * 0.1 + pull


def sweep_once(net, x, noise, size, inner):
    amplitude = math.sqrt(2 * size)
    for _ in range(inner):
        noise.normal_()
        x.add_(drift(net, x), alpha=size).add_(noise, alpha=amplitude)


class Chain:
    def __init__(self, net, walkers):
        self.x = torch.randn(walkers, 8, device=DEVICE)
        self.noise = torch.empty_like(self.x)
        self.sweep = partial(sweep_once, net, self.x, self.noise, 1e-2, INNER)  # flaw: launch-bound

    def run(self, outer):
        mean = torch.zeros(8, device=DEVICE)
        for _ in range(outer):
            self.sweep()
            mean += self.x.mean(0)
        return mean / outer


if __name__ == "__main__":
    torch.manual_seed(4)
    with torch.no_grad():
        chain = Chain(Score().to(DEVICE, torch.bfloat16), WALKERS)
        print([round(v, 3) for v in chain.run(OUTER).tolist()])
