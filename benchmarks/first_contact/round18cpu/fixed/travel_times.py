"""Travel-time regression on road links; the road graph is kept as plain Python objects for look-ups."""
import os
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
LINKS = 200 if TINY else 20_000
BATCH = 32 if TINY else 2048
STEPS = 8 if TINY else 100


def road_graph(links):
    rng = random.Random(1)
    return {i: [(rng.randrange(links), rng.random()) for _ in range(3)] for i in range(links)}


class TravelTime(nn.Module):
    def __init__(self, width=64 if TINY else 384):
        super().__init__()
        self.link = nn.Linear(24, width)
        self.near = nn.Linear(24, width)
        self.deep = nn.Sequential(nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, link, near):
        return self.deep(self.link(link) + self.near(near)).squeeze(-1)


def main():
    torch.manual_seed(3)
    graph = road_graph(LINKS)
    features = torch.randn(LINKS, 24)
    heads = torch.tensor([[n for n, _ in graph[i]] for i in range(LINKS)])
    slowness = torch.tensor([sum(w for _, w in graph[i]) for i in range(LINKS)])
    model = TravelTime()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    picks = torch.randint(LINKS, (STEPS, BATCH))
    began = time.perf_counter()
    for rows in picks:
        guess = model(features[rows], features[heads[rows]].mean(1))
        loss = F.huber_loss(guess, slowness[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"{(time.perf_counter() - began) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"travel loss {loss.item():.4f}, links out of 0: {graph[0][0][0]}")


if __name__ == "__main__":
    main()
