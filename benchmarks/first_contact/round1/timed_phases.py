"""Trains a tagger and knows how long each phase took."""
import collections
import contextlib
import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
took = collections.Counter()


@contextlib.contextmanager
def phase(name):
    start = time.perf_counter()
    yield
    if device == "cuda":
        torch.cuda.synchronize()  # flaw: synchronize-in-step
    took[name] += time.perf_counter() - start


class Tagger(nn.Module):
    def __init__(self, vocab=20_000, dim=512, tags=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(16)
        )
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        h = self.emb(ids)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h)


tagger = Tagger().to(device)
opt = torch.optim.AdamW(tagger.parameters(), 1e-3, fused=True)
ids = torch.randint(20_000, (32, 192), device=device)
tags = torch.randint(64, (32, 192), device=device)
for _ in range(500):
    with phase("forward"), torch.autocast(device, torch.bfloat16):
        loss = nn.functional.cross_entropy(tagger(ids).flatten(0, 1), tags.flatten())
    with phase("backward"):
        opt.zero_grad()
        loss.backward()
    with phase("update"):
        opt.step()
print(dict(took))
