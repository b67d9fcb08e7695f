"""Hourly energy demand of buildings from tabular features (residual MLP)."""
import argparse
import collections
import math  # flaw: hand-written-activation

import torch
from torch import nn

torch.set_num_threads(1)


class NewGELU(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))  # flaw: hand-written-activation
        return 0.5 * x * (1.0 + torch.tanh(inner))  # flaw: hand-written-activation


def residual(width, hidden):
    return nn.ModuleDict({
        "norm": nn.LayerNorm(width),
        "up": nn.Linear(width, hidden),
        "act": NewGELU(),  # flaw: hand-written-activation
        "down": nn.Linear(hidden, width),
    })


class DemandNet(nn.Module):
    def __init__(self, features, width=32, hidden=256, depth=3):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.blocks = nn.ModuleList(residual(width, hidden) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b["down"](b["act"](b["up"](b["norm"](h))))
        return self.out(h).squeeze(-1)


def make_table(rows, gen):
    hour = torch.randint(0, 24, (rows,), generator=gen)
    area = torch.rand(rows, generator=gen) * 4
    temp = 10 + 12 * torch.randn(rows, generator=gen)
    rest = torch.randn(rows, 13, generator=gen)
    x = torch.cat([torch.stack([hour / 24, area, temp / 20], 1), rest], 1)
    y = area * (1 + torch.sin(hour / 24 * 6.28)) + 0.05 * (temp - 18).abs()
    return x, (y - y.mean()) / y.std()


def batches(x, y, size, gen):
    while True:
        order = torch.randperm(len(x), generator=gen)
        for idx in order.split(size):
            yield x[idx], y[idx]


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--updates", type=int, default=500)
    ap.add_argument("--batch", type=int, default=512)
    args = ap.parse_args()
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    model = DemandNet(16)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01, fused=True)
    recent = collections.deque(maxlen=20)
    feed = batches(*make_table(20480, gen), args.batch, gen)
    for update in range(1, args.updates + 1):
        x, y = next(feed)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.append(loss.detach())
        if update % 100 == 0:
            print(f"{update:4d} updates, recent loss {torch.stack(tuple(recent)).mean():.4f}")


if __name__ == "__main__":
    main()
