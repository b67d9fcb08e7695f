"""Fits a small convolutional forecaster on rolling volatility and skew features of many assets."""
import argparse
import os
import sys
import time

import torch
from torch import nn


def moments(piece):
    centre = piece - piece.mean(dim=-1, keepdim=True)
    var = centre.square().mean(-1)
    third = (centre * centre * centre).mean(-1)
    return torch.stack((var.sqrt(), third / var.clamp_min(1e-12).pow(1.5)), dim=-1)


class RollingFeatures(nn.Module):
    def __init__(self, span):
        super().__init__()
        self.span = span

    def forward(self, returns):
        last = returns.size(1) - self.span
        cols = [moments(returns.narrow(1, s, self.span)) for s in range(last + 1)]  # flaw: python-loop-over-tensor
        return torch.stack(cols, dim=1)  # flaw: python-loop-over-tensor


class Forecaster(nn.Module):
    def __init__(self, span):
        super().__init__()
        self.features = RollingFeatures(span)
        self.body = nn.Sequential(nn.Conv1d(2, 24, 7, 3), nn.ReLU(), nn.Conv1d(24, 32, 5, 3), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, returns):
        with torch.no_grad():
            feats = self.features(returns)
        return self.head(self.body(feats.transpose(1, 2)).amax(-1)).squeeze(-1)


def market(args, gen):
    for _ in range(args.steps):
        level = torch.rand(args.assets, 1, generator=gen) * 0.02 + 0.005
        r = torch.randn(args.assets, args.days + 1, generator=gen) * level
        yield r[:, :-1] * 100, (r[:, -1] * 100).abs()


def run(args):
    torch.manual_seed(2)
    net = Forecaster(args.span)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, fused=True)
    total, start = 0.0, time.perf_counter()
    for past, target in market(args, torch.Generator().manual_seed(9)):
        loss = nn.functional.smooth_l1_loss(net(past), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"{(time.perf_counter() - start) / args.steps * 1e3:.1f} ms", file=sys.stderr)
    print(f"mean loss {total / args.steps:.4f}")


if __name__ == "__main__":
    tiny = os.environ.get("TINY") == "1"
    ap = argparse.ArgumentParser()
    ap.add_argument("--assets", type=int, default=8 if tiny else 256)
    ap.add_argument("--days", type=int, default=60 if tiny else 220)
    ap.add_argument("--span", type=int, default=21)
    ap.add_argument("--steps", type=int, default=4 if tiny else 120)
    run(ap.parse_args())
