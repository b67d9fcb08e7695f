# Cloud masks for satellite tiles: ConvNeXt-like stages, channels-last throughout.
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


class ChannelMix(nn.Module):
    """LayerNorm and a linear layer over the channels of a map."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, dim)

    def forward(self, x):
        y = torch.movedim(x, 1, -1)
        y = F.silu(self.mix(self.norm(y)))
        return torch.movedim(y, -1, 1).contiguous()  # flaw: layout-churn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.spatial = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.channel = ChannelMix(dim)

    def forward(self, x):
        return x + self.channel(self.spatial(x))


class CloudNet(nn.Module):
    def __init__(self, bands=4, dim=16 if TINY else 32, depth=2 if TINY else 6):
        super().__init__()
        self.stem = nn.Conv2d(bands, dim, 4, stride=4)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.out = nn.Conv2d(dim, 1, 1)

    def forward(self, tile):
        return self.out(self.blocks(self.stem(tile)))


def tiles(count, size, batch):
    gen = torch.Generator().manual_seed(8)
    for _ in range(count):
        x = torch.rand(batch, 4, size, size, generator=gen).to(memory_format=torch.channels_last)
        yield x, (F.avg_pool2d(x.mean(1, keepdim=True), 4) > 0.5).float()


def main():
    torch.manual_seed(0)
    size, batch, steps = (32, 2, 6) if TINY else (256, 4, 90)
    data = list(tiles(4, size, batch))
    net = CloudNet().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    began = time.perf_counter()
    for step in range(steps):
        x, mask = data[step % len(data)]
        loss = F.binary_cross_entropy_with_logits(net(x), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"{(time.perf_counter() - began) / steps * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"mask loss {loss.item():.4f}")


main()
