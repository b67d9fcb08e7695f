"""Forecast water levels of a network of tide gauges with a multi-query transformer.

One key/value head is shared by all query heads (Shazeer 2019), which keeps the
state small when the forecaster is rolled out on the gauge computers later.
"""
import argparse
import math
import time

import torch
from torch import nn
from torch.nn import functional as F


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--steps", type=int, default=700)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--hours", type=int, default=1024)
    p.add_argument("--width", type=int, default=1024)
    p.add_argument("--heads", type=int, default=16)
    p.add_argument("--depth", type=int, default=4)
    p.add_argument("--gauges", type=int, default=192)
    p.add_argument("--lr", type=float, default=2e-4)
    p.add_argument("--log-every", type=int, default=100)
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


class MultiQuery(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.shared = nn.Linear(width, 2 * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q = self.query(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k, v = self.shared(x).view(b, t, 1, 2 * self.size).transpose(1, 2).chunk(2, dim=-1)
        k, v = k.expand(-1, self.heads, -1, -1), v.expand(-1, self.heads, -1, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = MultiQuery(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, channels, width, heads, depth, hours):
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.when = nn.Parameter(torch.randn(hours, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, channels)

    def forward(self, x):
        h = self.embed(x) + self.when
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def synthetic_gauges(gauges, hours, channels, seed):
    """Eight channels a gauge: level, surge, pressure ... as sums of tidal constituents."""
    g = torch.Generator().manual_seed(seed)
    periods = torch.tensor([12.42, 12.0, 12.66, 23.93, 25.82, 327.9])
    t = torch.arange(hours, dtype=torch.float32)
    phase = torch.rand(gauges, channels, len(periods), generator=g) * 2 * math.pi
    size = torch.rand(gauges, channels, len(periods), generator=g)
    level = torch.zeros(gauges, channels, hours)
    for k, period in enumerate(periods.tolist()):
        level += size[..., k, None] * torch.sin(2 * math.pi * t / period + phase[..., k, None])
    level += 0.1 * torch.randn(level.shape, generator=g)
    return level.transpose(1, 2).contiguous()


def windows(series, batch, hours, generator):
    span = torch.arange(hours + 1, device=series.device)
    while True:
        gauge = torch.randint(series.shape[0], (batch, 1), generator=generator, device=series.device)
        start = torch.randint(series.shape[1] - hours - 1, (batch, 1), generator=generator, device=series.device)
        piece = series[gauge, start + span]
        yield piece[:, :-1], piece[:, 1:]


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    series = synthetic_gauges(args.gauges, 4 * args.hours, 8, args.seed).to(device)
    model = Forecaster(8, args.width, args.heads, args.depth, args.hours).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    draw = torch.Generator(device=device).manual_seed(args.seed)
    begin = time.time()
    for step, (x, y) in zip(range(args.steps), windows(series, args.batch, args.hours, draw)):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.smooth_l1_loss(model(x).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if (step + 1) % args.log_every == 0:
            print(f"step {step + 1:5d}  loss {loss.item():.4f}  {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
