"""Which product goes into the basket next? A softmax over the whole catalogue."""
import os
import time
from contextlib import nullcontext

import torch
import torch.nn as nn

SHRINK = os.environ.get("TINY") == "1"
PRODUCTS = 512 if SHRINK else 32768
BASKETS = 64 if SHRINK else 16384
FEATURES = 32 if SHRINK else 768
HIDDEN = 64 if SHRINK else 3072
STEPS = 60 if SHRINK else 400


class SmoothedObjective(nn.Module):
    """Softmax objective where a share of the mass goes to all products evenly."""

    def __init__(self, share=0.1):
        super().__init__()
        self.share = share

    def forward(self, scores, bought):
        return nn.functional.cross_entropy(scores, bought, label_smoothing=self.share)


class TowerMixin:
    def build_tower(self):
        self.tower = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN), nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, FEATURES))


class CatalogueMixin:
    def build_catalogue(self):
        self.catalogue = nn.Linear(FEATURES, PRODUCTS, bias=False)


class BasketModel(TowerMixin, CatalogueMixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.build_tower()
        self.build_catalogue()

    def forward(self, x):
        return self.catalogue(self.tower(x))


class Experiment:
    def __init__(self, objective):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.cuda = self.device == "cuda"
        torch.manual_seed(31)
        torch.set_float32_matmul_precision("high")
        self.model = BasketModel().to(self.device)
        self.objective = objective.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=self.cuda)
        self.pool = torch.randn(4 * BASKETS, FEATURES, device=self.device)
        self.bought = (torch.rand(4 * BASKETS, device=self.device).square() * PRODUCTS).long()
        self.running = torch.zeros((), device=self.device)

    def precision(self):
        return torch.autocast("cuda", torch.bfloat16) if self.cuda else nullcontext()

    def minibatch(self):
        rows = torch.randint(len(self.pool), (BASKETS,), device=self.device)
        return self.pool[rows], self.bought[rows]

    def step(self):
        x, bought = self.minibatch()
        with self.precision():
            scores = self.model(x)
        loss = self.objective(scores.float(), bought)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.running += loss.detach()

    def run(self):
        t0 = time.monotonic()
        for _ in range(STEPS):
            self.step()
        print(f"objective {self.running.item() / STEPS:.5f}")
        print(f"seconds {time.monotonic() - t0:.2f}")


Experiment(SmoothedObjective()).run()
