#!/usr/bin/env python
# Multi-gate mixture of experts for three conversion targets of a supermarket's promotion mails.
import contextlib
import time
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class DebugOptions:
    grad_trace: bool = False
    log_every: int = 100


@dataclass
class TrainOptions:
    customers: int = 20_000
    features: int = 96
    experts: int = 8
    width: int = 64
    tasks: tuple = ("opened", "clicked", "bought")
    batch: int = 256
    steps: int = 1600
    lr: float = 2e-3
    seed: int = 404
    debug: DebugOptions = field(default_factory=DebugOptions)


class Expert(nn.Sequential):
    def __init__(self, inputs, width):
        super().__init__(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )


class Tower(nn.Module):
    def __init__(self, inputs, width, experts):
        super().__init__()
        self.gate = nn.Linear(inputs, experts)
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, opinions):
        share = self.gate(x).softmax(-1).unsqueeze(1)
        return self.body(torch.bmm(share, opinions).squeeze(1)).squeeze(-1)


class PromoNet(nn.Module):
    def __init__(self, opt: TrainOptions):
        super().__init__()
        self.experts = nn.ModuleList(Expert(opt.features, opt.width) for _ in range(opt.experts))
        self.towers = nn.ModuleDict({t: Tower(opt.features, opt.width, opt.experts) for t in opt.tasks})

    def forward(self, x):
        opinions = torch.stack([expert(x) for expert in self.experts], dim=1)
        return torch.stack([tower(x, opinions) for tower in self.towers.values()], dim=1)


class Customers:
    """All customers in two tensors; a batch is one index."""

    def __init__(self, opt: TrainOptions):
        g = torch.Generator().manual_seed(opt.seed)
        self.x = torch.randn(opt.customers, opt.features, generator=g)
        taste = torch.randn(opt.features, len(opt.tasks), generator=g) / opt.features**0.5
        chance = torch.sigmoid(2 * (self.x @ taste).sin() - torch.tensor([0.0, 1.0, 2.0]))
        self.y = torch.bernoulli(chance, generator=g)
        self.generator = g

    def batches(self, size, count):
        for _ in range(count):
            rows = torch.randint(len(self.x), (size,), generator=self.generator)
            yield self.x[rows], self.y[rows]


@contextlib.contextmanager
def session(opt: TrainOptions):
    torch.manual_seed(opt.seed)
    begin = time.perf_counter()
    with torch.autograd.set_detect_anomaly(opt.debug.grad_trace):
        yield
    print(f"done after {time.perf_counter() - begin:.1f} s")


def fit(opt: TrainOptions):
    data = Customers(opt)
    net = PromoNet(opt)
    optimizer = torch.optim.AdamW(net.parameters(), lr=opt.lr, weight_decay=1e-4, fused=True)
    mean = torch.zeros(())
    for step, (x, y) in enumerate(data.batches(opt.batch, opt.steps), start=1):
        loss = F.binary_cross_entropy_with_logits(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.detach()
        if step % opt.debug.log_every == 0:
            print(f"{step} promo loss {float(mean) / opt.debug.log_every:.5f}")
            mean.zero_()
    return net


if __name__ == "__main__":
    options = TrainOptions()
    with session(options):
        fit(options)
