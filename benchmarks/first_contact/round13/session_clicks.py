"""Next-click model over user sessions kept as Python objects; callbacks log and housekeep."""
import os
import random
from gc import collect as reclaim
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
P = dict(users=200, clicks=32, items=512, dim=64, depth=2, batch=16, steps=5, workers=1) if TINY else \
    dict(users=60000, clicks=200, items=16384, dim=768, depth=6, batch=64, steps=110, workers=4)
WINDOW = P["clicks"] - P["clicks"] % 8
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Visit(NamedTuple):
    user: int
    tags: list
    referrer: dict


class Sessions(Dataset):
    def __init__(self, p):
        rng = random.Random(6)
        self.visits = [Visit(u, [u % 7, u % 11], {"from": u % 3, "age": rng.random()}) for u in range(p["users"])]
        gen = np.random.default_rng(6)
        start = gen.integers(0, p["items"], (p["users"], 1))
        self.clicks = ((start + np.arange(WINDOW + 1) * 37 + gen.integers(0, 2, (p["users"], WINDOW + 1))) % p["items"])

    def __len__(self):
        return P["batch"] * P["steps"]

    def __getitem__(self, i):
        i %= len(self.visits)
        return self.clicks[i], self.visits[i].tags[0]


class Callback:
    def batch_end(self, trainer, loss): ...
    def fit_end(self, trainer): ...


class Meter(Callback):
    def __init__(self):
        self.value = torch.zeros((), device=DEVICE)

    def batch_end(self, trainer, loss):
        self.value.lerp_(loss, 0.1)

    def fit_end(self, trainer):
        print(f"click loss {self.value.item():.4f}")


class Housekeeping(Callback):
    def __init__(self, every=1):  # flaw: gc-pause-in-step
        self.every, self.n = every, 0

    def batch_end(self, trainer, loss):
        self.n += 1
        if self.n % self.every == 0:
            reclaim()  # flaw: gc-pause-in-step


class Step(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.inp, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        q, k, v = self.inp(self.ln1(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.f2(F.gelu(self.f1(self.ln2(x))))


class Trainer:
    def __init__(self, callbacks):
        torch.manual_seed(0)
        self.callbacks = callbacks
        d = P["dim"]
        self.item = nn.Embedding(P["items"], d)
        self.kind = nn.Embedding(8, d)
        nn.init.normal_(self.item.weight, std=0.02)
        self.steps = nn.Sequential(*(Step(d) for _ in range(P["depth"])))
        self.final = nn.LayerNorm(d)
        self.parts = nn.ModuleList([self.item, self.kind, self.steps, self.final]).to(DEVICE)
        if not TINY:
            [s.compile() for s in self.steps]
        self.opt = torch.optim.AdamW(self.parts.parameters(), 3e-4, fused=True)

    def loss(self, clicks, tag):
        x = self.item(clicks[:, :-1]) + self.kind(tag)[:, None]
        logits = F.linear(self.final(self.steps(x)), self.item.weight)
        return F.cross_entropy(logits.flatten(0, 1), clicks[:, 1:].flatten())

    def fit(self, loader):
        for clicks, tag in loader:
            clicks, tag = clicks.to(DEVICE, non_blocking=True), tag.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
                loss = self.loss(clicks, tag)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            for c in self.callbacks:
                c.batch_end(self, loss.detach())
        for c in self.callbacks:
            c.fit_end(self)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    feed = DataLoader(Sessions(P), P["batch"], num_workers=P["workers"], pin_memory=DEVICE == "cuda")
    Trainer([Meter(), Housekeeping()]).fit(feed)
