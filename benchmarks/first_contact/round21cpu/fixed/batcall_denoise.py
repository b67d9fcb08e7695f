"""Removes wind noise from recordings of bat calls. Gated dilated convolutions, residual target."""
import argparse
import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

BLOCKS = {}


def register(name):
    def keep(cls):
        BLOCKS[name] = cls
        return cls

    return keep


def lean(cls):
    """The same block, which keeps only its input for the backward pass."""

    class Lean(cls):
        @functools.wraps(cls.forward)
        def forward(self, *inputs):
            return checkpoint(super().forward, *inputs, use_reentrant=False)

    Lean.__name__ = Lean.__qualname__ = "Lean" + cls.__name__
    return Lean


@register("gated")
class GatedBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.spread = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.back = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.back(F.glu(self.spread(x), dim=1))


class Denoiser(nn.Module):
    def __init__(self, channels, depth, block="gated", wrap=None):
        super().__init__()
        make = wrap(BLOCKS[block]) if wrap else BLOCKS[block]
        self.enter = nn.Conv1d(1, channels, 9, padding=4)
        self.blocks = nn.ModuleList(make(channels, 2 ** (i % 5)) for i in range(depth))
        self.leave = nn.Conv1d(channels, 1, 1)

    def forward(self, wave):
        x = self.enter(wave)
        for block in self.blocks:
            x = block(x)
        return wave - self.leave(x)


def chirps(count, length, g):
    t = torch.linspace(0, 1, length)
    low = torch.rand(count, 1, generator=g) * 40 + 20
    sweep = torch.rand(count, 1, generator=g) * 120 - 60
    when = torch.rand(count, 1, generator=g) * 0.6 + 0.2
    envelope = torch.exp(-(((t - when) / 0.08) ** 2))
    return (envelope * torch.sin(2 * torch.pi * (low * t + sweep * t**2)))[:, None]


def wind(shape, g):
    rough = torch.randn(shape, generator=g)
    return 0.5 * F.avg_pool1d(rough, 15, stride=1, padding=7) * 15**0.5


def clips(args, g):
    clean = chirps(args.clips, args.length, g)
    noisy = clean + wind(clean.shape, g)
    while True:
        for rows in torch.randperm(args.clips, generator=g).split(args.batch):
            if len(rows) == args.batch:
                yield noisy[rows], clean[rows]


def main(argv=None):
    p = argparse.ArgumentParser()
    p.add_argument("--channels", type=int, default=32)
    p.add_argument("--depth", type=int, default=10)
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--clips", type=int, default=2000)
    p.add_argument("--steps", type=int, default=400)
    args = p.parse_args(argv)

    torch.manual_seed(31)
    g = torch.Generator().manual_seed(31)
    net = Denoiser(args.channels, args.depth)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    total = torch.zeros(())
    for step, (noisy, clean) in enumerate(clips(args, g), 1):
        loss = F.mse_loss(net(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 40 == 0:
            print("step", step, "rest of the wind", f"{total.item() / 40:.5f}")
            total.zero_()
        if step == args.steps:
            break


if __name__ == "__main__":
    main()
