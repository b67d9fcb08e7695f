"""News ranking: article vectors are fixed, an adapter is trained with sampled negatives.

Negatives follow the popularity of the articles and are drawn on the host while the device works.
"""
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

is_tiny = os.environ.get("TINY") == "1"
ARTICLES, DIM, HIDDEN = (500, 32, 64) if is_tiny else (200_000, 768, 3072)
READERS, PAST, RIVALS = (32, 4, 3) if is_tiny else (4096, 16, 7)
STEPS = 60 if is_tiny else 950
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = dev.type == "cuda"


class PopularitySampler:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        share = 1.0 / np.arange(1, ARTICLES + 1) ** 0.6
        self.cdf = np.cumsum(self.rng.permutation(share))
        self.cdf /= self.cdf[-1]

    def fill(self, slot):
        """Histories around a topic, one clicked article, and its rivals."""
        out = slot.numpy()
        centre = self.rng.integers(0, ARTICLES, (READERS, 1))
        spread = self.rng.integers(-200, 200, (READERS, PAST + 1))
        out[:, :PAST + 1] = (centre + spread) % ARTICLES
        out[:, PAST + 1:] = np.searchsorted(self.cdf, self.rng.random((READERS, RIVALS)))


class Feeder:
    """Rotating page-locked slots; a slot is refilled once its copy is over."""

    def __init__(self, sampler, slots=4):
        self.sampler = sampler
        self.slots = [torch.empty(READERS, PAST + 1 + RIVALS, dtype=torch.int64, pin_memory=gpu)
                      for _ in range(slots)]
        self.events = [None] * slots

    def __call__(self, step):
        k = step % len(self.slots)
        if self.events[k] is not None:
            self.events[k].synchronize()
        self.sampler.fill(self.slots[k])
        ids = self.slots[k].to(dev, non_blocking=True)
        if gpu:
            self.events[k] = torch.cuda.Event()
            self.events[k].record()
        return ids


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

    def forward(self, v):
        return self.down(F.relu(self.up(v), inplace=True))


class Ranker(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.register_buffer("vectors", vectors)
        self.adapter = Adapter()

    def forward(self, ids):
        encoded = self.adapter(self.vectors[ids])
        reader = encoded[:, :PAST].mean(1, keepdim=True)
        return (reader @ encoded[:, PAST:].transpose(1, 2)).squeeze(1) * DIM ** -0.5


class Journal:
    def __init__(self):
        self.lines = []

    def on_step(self, step, loss):
        self.lines.append((step, loss.detach()))

    def text(self):
        return "\n".join(f"{step}\t{loss:.4f}" for step, loss in self.lines)


def main():
    torch.manual_seed(23)
    torch.set_float32_matmul_precision("high")
    topic = torch.randn(ARTICLES // 100, DIM, device=dev).repeat_interleave(100, 0)
    vectors = topic + torch.randn(ARTICLES, DIM, device=dev)
    model = Ranker(vectors.to(torch.bfloat16) if gpu else vectors).to(dev)
    opt = torch.optim.AdamW(model.adapter.parameters(), lr=2e-4, fused=gpu)
    first = torch.zeros(READERS, dtype=torch.int64, device=dev)
    feed, journal = Feeder(PopularitySampler()), Journal()
    t0 = time.perf_counter()
    for step in range(STEPS):
        ids = feed(step)
        with torch.autocast(dev.type, torch.bfloat16, enabled=gpu):
            loss = F.cross_entropy(model(ids), first)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        journal.on_step(step, loss)
    print(journal.text()[-60:])
    print(f"{time.perf_counter() - t0:.2f} s")


if __name__ == "__main__":
    main()
