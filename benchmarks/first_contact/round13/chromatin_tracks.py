"""Predict chromatin tracks from binned sequence features; assay queries read the bins."""
import math
import os
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


class Dims(NamedTuple):
    batch: int
    bins: int
    assays: int
    channels: int
    width: int
    heads: int
    depth: int
    steps: int


DIMS = Dims(4, 32, 32, 16, 64, 2, 1, 60) if os.environ.get("TINY") == "1" else \
    Dims(32, 1024, 1024, 128, 512, 8, 4, 260)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GPU = DEVICE.type == "cuda"


class ReadBins(nn.Module):
    """Assay tokens read from the bins."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width, bias=False)
        self.merge = nn.Linear(width, width)

    def weigh(self, ask, key):
        closeness = torch.einsum("bihd,bjhd->bhji", ask, key)  # flaw: hand-written-attention
        closeness = closeness / math.sqrt(ask.shape[-1])  # flaw: hand-written-attention
        return closeness.softmax(-2)  # flaw: hand-written-attention

    def forward(self, tokens, bins):
        ask = self.ask(tokens).unflatten(-1, (self.heads, -1))
        key, value = self.key_value(bins).unflatten(-1, (2, self.heads, -1)).unbind(2)
        share = self.weigh(ask, key)  # flaw: hand-written-attention
        read = torch.einsum("bhji,bjhd->bihd", share, value)  # flaw: hand-written-attention
        return self.merge(read.flatten(2))


class Stage(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_tokens, self.norm_bins, self.norm_mlp = (nn.LayerNorm(width) for _ in range(3))
        self.read = ReadBins(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens, bins):
        tokens = tokens + self.read(self.norm_tokens(tokens), self.norm_bins(bins))
        return tokens + self.mlp(self.norm_mlp(tokens))


class TrackModel(nn.Module):
    def __init__(self, d: Dims):
        super().__init__()
        self.stem = nn.Linear(d.channels, d.width)
        self.position = nn.Parameter(torch.randn(d.bins, d.width) * 0.02)
        self.assay = nn.Parameter(torch.randn(d.assays, d.width) * 0.5)
        self.stages = nn.ModuleList(Stage(d.width, d.heads) for _ in range(d.depth))
        self.out = nn.Linear(d.width, 8)

    def forward(self, features):
        bins = self.stem(features) + self.position
        tokens = self.assay.expand(len(features), -1, -1)
        for stage in self.stages:
            tokens = stage(tokens, bins)
        return self.out(tokens)


def loci(d: Dims):
    """Endless random loci with a planted signal, drawn on the device."""
    g = torch.Generator(device=DEVICE).manual_seed(17)
    mix = torch.randn(d.channels, 8, device=DEVICE, generator=g) / d.channels ** 0.5
    while True:
        x = torch.randn(d.batch, d.bins, d.channels, device=DEVICE, generator=g)
        signal = (x[:, :16].mean(1) @ mix).exp()
        yield x, signal[:, None].expand(-1, d.assays, -1)


def main():
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = TrackModel(DIMS).to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=GPU)
    source = loci(DIMS)
    losses = torch.zeros(DIMS.steps, device=DEVICE)
    t0 = time.perf_counter()
    for step in range(DIMS.steps):
        x, y = next(source)
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=GPU):
            rate = model(x)
        loss = F.poisson_nll_loss(rate.float(), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses[step] = loss.detach()
    print(f"poisson nll {losses.mean().item():.5f} last {losses[-1].item():.5f}")
    print(f"{time.perf_counter() - t0:.2f} s")


if __name__ == "__main__":
    main()
