"""Masked reconstruction of tide gauge records; attention with a fixed penalty per hour of distance."""
import os
from typing import NamedTuple

import torch
from torch import Tensor, nn

tiny = os.getenv("TINY") == "1"
gpu = torch.cuda.is_available()
dev = torch.device("cuda") if gpu else torch.device("cpu")


class Sizes(NamedTuple):
    hours: int = 1024
    stations: int = 12
    gauges: int = 8
    width: int = 768
    heads: int = 12
    layers: int = 6
    steps: int = 150


SIZES = Sizes(48, 2, 8, 32, 4, 2, 4) if tiny else Sizes()


def distance_penalty(heads: int, hours: int) -> Tensor:
    slope = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    at = torch.arange(hours)
    return -slope[:, None, None] * (at[None] - at[:, None]).abs()


class Mixing(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.heads, self.scale = s.heads, (s.width // s.heads) ** -0.5
        self.to_qkv = nn.Linear(s.width, 3 * s.width, bias=False)
        self.to_out = nn.Linear(s.width, s.width)

    def forward(self, x: Tensor, penalty: Tensor) -> Tensor:
        q, k, v = self.to_qkv(x).unflatten(2, (3, self.heads, -1)).unbind(2)
        affinity = torch.einsum("bihd,bjhd->bhij", q * self.scale, k)  # flaw: hand-written-attention
        affinity = (affinity + penalty).softmax(-1)  # flaw: hand-written-attention
        mixed = torch.einsum("bhij,bjhd->bihd", affinity, v)  # flaw: hand-written-attention
        return self.to_out(mixed.flatten(2))


class Block(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.pre, self.post = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.mixing = Mixing(s)
        self.mlp = nn.Sequential(nn.Linear(s.width, 4 * s.width), nn.GELU(), nn.Linear(4 * s.width, s.width))

    def forward(self, x: Tensor, penalty: Tensor) -> Tensor:
        x = x + self.mixing(self.pre(x), penalty)
        return x + self.mlp(self.post(x))


class TideNet(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.enter, self.leave = nn.Linear(2 * s.gauges, s.width), nn.Linear(s.width, s.gauges)
        self.blocks = nn.ModuleList([Block(s) for _ in range(s.layers)])
        self.register_buffer("penalty", distance_penalty(s.heads, s.hours).to(torch.bfloat16), persistent=False)

    def forward(self, level: Tensor, hidden: Tensor) -> Tensor:
        x = self.enter(torch.cat([level.masked_fill(hidden, 0), hidden.to(level.dtype)], -1))
        for block in self.blocks:
            x = block(x, self.penalty)
        return self.leave(x)


def harmonics(s: Sizes, g: torch.Generator) -> Tensor:
    """Sums of a few tidal constituents with random phases."""
    hours = torch.arange(s.hours, device=dev) / 12.42
    phase = torch.rand(64, 1, s.gauges, 4, generator=g, device=dev) * 6.283
    speed = torch.tensor([1.0, 1.035, 0.52, 0.48], device=dev)
    return (6.283 * hours[None, :, None, None] * speed + phase).sin().mean(-1)


def run(s: Sizes = SIZES) -> None:
    torch.manual_seed(21)
    g = torch.Generator(device=dev).manual_seed(22)
    archive = harmonics(s, g)
    net = TideNet(s).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    total = torch.zeros((), device=dev)
    step = 0
    while step < s.steps:
        level = archive[torch.randint(64, (s.stations,), generator=g, device=dev)]
        hidden = torch.rand(level.shape, generator=g, device=dev) < 0.4
        with torch.autocast(dev.type, torch.bfloat16):
            guess = net(level, hidden)
        miss = ((guess.float() - level).square() * hidden).sum() / hidden.sum()
        opt.zero_grad()
        miss.backward()
        opt.step()
        total += miss.detach()
        step += 1
    print(f"mean squared miss {(total / step).item():.4f}")


if __name__ == "__main__":
    run()
