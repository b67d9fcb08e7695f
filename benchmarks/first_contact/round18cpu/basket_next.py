import os
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

SMALL = bool(int(os.environ.get("TINY", "0")))
ITEMS = 500 if SMALL else 12000
STEPS = 4 if SMALL else 100


class SmoothedTargets:
    """Criterion registered under a name so that experiments can pick it."""

    registry = {}

    def __init_subclass__(cls, name, **kw):
        super().__init_subclass__(**kw)
        SmoothedTargets.registry[name] = cls

    def __init__(self, classes, eps):
        self.classes, self.eps = classes, eps


class SoftCE(SmoothedTargets, name="soft_ce"):
    def __call__(self, logits, label):
        hot = F.one_hot(label, self.classes).to(logits.dtype)  # flaw: hand-written-loss
        soft = hot * (1.0 - self.eps) + self.eps / self.classes  # flaw: hand-written-loss
        logp = F.log_softmax(logits, dim=-1)  # flaw: hand-written-loss
        return torch.sum(-soft * logp, dim=-1).mean()  # flaw: hand-written-loss


class NextBasket(nn.Module):
    def __init__(self, items, dim=48):
        super().__init__()
        self.table = nn.EmbeddingBag(items, dim, mode="mean", sparse=False)
        self.hidden = nn.Sequential(nn.Linear(dim, 128), nn.SiLU(), nn.Linear(128, dim))
        self.out = nn.Linear(dim, items)

    def forward(self, baskets):
        return self.out(self.hidden(self.table(baskets)))


def stream(n):
    g = torch.Generator().manual_seed(3)
    rank = torch.arange(1, ITEMS + 1, dtype=torch.float32).pow(-0.8)
    for _ in range(n):
        picks = torch.multinomial(rank, 512 * 9, replacement=True, generator=g).view(512, 9)
        yield picks[:, :8].contiguous(), picks[:, 8].contiguous()


torch.manual_seed(0)
model = NextBasket(ITEMS)
criterion = SmoothedTargets.registry["soft_ce"](ITEMS, 0.1)
optim = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
t0 = time.perf_counter()
running = torch.zeros(())
for baskets, nxt in stream(STEPS):
    optim.zero_grad()
    loss = criterion(model(baskets), nxt)
    loss.backward()
    optim.step()
    running.lerp_(loss.detach(), 0.1)
print(f"{(time.perf_counter() - t0) / STEPS * 1e3:.1f} ms", file=sys.stderr)
print("smoothed loss", round(running.item(), 4), "last", round(loss.item(), 4))
