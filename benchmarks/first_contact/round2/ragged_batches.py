"""Sentences are bucketed, each bucket is as long as its longest sentence."""
import random
from functools import cache

import torch
import torch.nn as nn
import torch.nn.functional as F


@cache
def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


class Reader(nn.Module):
    def __init__(self, vocab=4096, d=512, n=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.ups = nn.ModuleList(nn.Linear(2 * d, 2 * d) for _ in range(n))
        self.downs = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(n))
        self.cls = nn.Linear(d, 12)

    def forward(self, ids):
        x = self.emb(ids)
        for norm, up, down in zip(self.norms, self.ups, self.downs):
            h = norm(x)
            h = torch.cat([h, h.mean(1, keepdim=True).expand_as(h)], -1)
            x = x + down(F.gelu(up(h)))
        return self.cls(x.amax(1))


def buckets(corpus, batch):
    rng = random.Random(4)
    while True:
        longest = rng.randint(40, 400)  # flaw: recompilation
        rows = torch.randint(0, len(corpus), (batch,), device=corpus.device)
        yield corpus[rows, :longest]  # flaw: recompilation


def main():
    torch._dynamo.config.cache_size_limit = 1000
    torch._dynamo.config.accumulated_cache_size_limit = 2000
    net = Reader().to(device())
    step_fn = torch.compile(net, dynamic=False)  # flaw: recompilation
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    corpus = torch.randint(0, 4096, (4096, 400), device=device())
    label = torch.randint(0, 12, (64,), device=device())
    for i, ids in zip(range(400), buckets(corpus, 64)):
        with torch.autocast(device(), dtype=torch.bfloat16):
            loss = F.cross_entropy(step_fn(ids), label)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 50 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
