"""Score the next purchase of each shopper from a basket history (offline evaluation of a GRU recommender)."""
import os
import sys
import time

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
ITEMS = 500 if TINY else 4000
SHOPPERS = 8 if TINY else 64
HISTORY = 10 if TINY else 30
ROUNDS = 6 if TINY else 80


class BasketGRU(nn.Module):
    def __init__(self, items, width=96):
        super().__init__()
        self.item = nn.Embedding(items, width, padding_idx=0)
        self.memory = nn.GRU(width, width, batch_first=True)
        self.score = nn.Linear(width, items)

    def forward(self, baskets, lengths):
        states, _ = self.memory(self.item(baskets))
        return self.score(states[torch.arange(len(lengths)), lengths - 1])


class HitRate:
    def __init__(self, model, k=20):
        self.model, self.k = model, k
        self.hits = self.seen = 0

    def __call__(self, baskets, lengths, bought):
        scores = self.model(baskets, lengths)
        ranked = scores.topk(self.k).indices
        self.hits += (ranked == bought[:, None]).any(1).sum()
        self.seen += len(bought)


def histories():
    gen = torch.Generator().manual_seed(21)
    for _ in range(5):
        lengths = torch.randint(HISTORY // 2, HISTORY + 1, (SHOPPERS,), generator=gen)
        baskets = torch.randint(1, ITEMS, (SHOPPERS, HISTORY), generator=gen)
        baskets[torch.arange(HISTORY) >= lengths[:, None]] = 0
        yield baskets, lengths, torch.randint(1, ITEMS, (SHOPPERS,), generator=gen)


@torch.inference_mode()
def evaluate():
    torch.manual_seed(0)
    model = BasketGRU(ITEMS).eval()
    metric = HitRate(model)
    shards = list(histories())
    began = time.perf_counter()
    for n in range(ROUNDS):
        metric(*shards[n % len(shards)])
    print(f"{(time.perf_counter() - began) / ROUNDS * 1e3:.1f} ms a step", file=sys.stderr)
    return metric.hits.item() / metric.seen


if __name__ == "__main__":
    print(f"hit rate at 20: {evaluate():.4f}")
