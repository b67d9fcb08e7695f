import os
import sys
import time

import torch
from torch import nn

QUICK = os.environ.get("TINY") == "1"
CONFIG = {
    "hidden": 64 if QUICK else 1536,
    "rows": 48,
    "updates": 4 if QUICK else 120,
    "optimizer": "Adam",
    "optimizer_args": {"lr": 3e-4, "betas": (0.9, 0.98)},  # flaw: per-tensor-optimizer
}


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.body(x)


class SeverityModel(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.blocks = nn.Sequential(Residual(width), Residual(width))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(1)


class Fit:
    def __init__(self, config):
        self.config = config
        self.model = SeverityModel(40, config["hidden"])
        kind = getattr(torch.optim, config["optimizer"])
        self.opt = kind(self.model.parameters(), **config["optimizer_args"])  # flaw: per-tensor-optimizer
        self.gen = torch.Generator().manual_seed(1)
        self.truth = torch.randn(40, generator=self.gen)

    def claims(self):
        x = torch.randn(self.config["rows"], 40, generator=self.gen)
        return x, torch.tanh(x @ self.truth * 0.3)

    def update(self):
        x, y = self.claims()
        loss = nn.functional.huber_loss(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        return loss.detach()

    def __call__(self):
        began, mean = time.perf_counter(), torch.zeros(())
        for _ in range(self.config["updates"]):
            mean += self.update()
        n = self.config["updates"]
        print(f"{(time.perf_counter() - began) / n * 1e3:.1f} ms", file=sys.stderr)
        print(f"huber {mean.item() / n:.4f}")


torch.manual_seed(7)
Fit(CONFIG)()
