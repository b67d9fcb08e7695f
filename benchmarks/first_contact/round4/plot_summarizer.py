"""Prefix language model for plot summaries: long context, packed batches."""
import os
import sys
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Shape(NamedTuple):
    vocab: int = 8192
    dim: int = 1024
    heads: int = 16
    depth: int = 6
    context: int = 4096
    batch: int = 2
    steps: int = 80


SHAPE = Shape(128, 32, 2, 2, 64, 2, 30) if os.environ.get("SMALL") == "1" else Shape()


class SelfAttention(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.s = s
        self.to_q = nn.Linear(s.dim, s.dim, bias=False)
        self.to_k = nn.Linear(s.dim, s.dim, bias=False)
        self.to_v = nn.Linear(s.dim, s.dim, bias=False)
        self.back = nn.Linear(s.dim, s.dim, bias=False)
        visible = torch.ones(s.context, s.context, dtype=torch.bool).tril_()  # flaw: slow-attention-kernel
        self.register_buffer("visible", visible, persistent=False)  # flaw: slow-attention-kernel

    def heads_first(self, t):
        return t.unflatten(-1, (self.s.heads, -1)).transpose(1, 2)

    def forward(self, x):
        n = x.size(1)
        q, k, v = map(self.heads_first, (self.to_q(x), self.to_k(x), self.to_v(x)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.visible[:n, :n])  # flaw: slow-attention-kernel
        return self.back(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(s.dim), SelfAttention(s)
        self.n2 = nn.LayerNorm(s.dim)
        self.mlp = nn.Sequential(nn.Linear(s.dim, 4 * s.dim), nn.GELU(), nn.Linear(4 * s.dim, s.dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Summarizer(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.words = nn.Embedding(s.vocab, s.dim)
        self.spots = nn.Parameter(torch.zeros(s.context, s.dim))
        self.stack = nn.Sequential(*(Layer(s) for _ in range(s.depth)))
        self.head = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, s.vocab, bias=False))

    def forward(self, ids):
        return self.head(self.stack(self.words(ids) + self.spots[: ids.size(1)]))


def main() -> int:
    s = SHAPE
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(77)
    model = Summarizer(s).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    plots = torch.randint(s.vocab, (s.batch * 10, s.context + 1), device=device)
    for step in range(s.steps):
        batch = plots[torch.randint(len(plots), (s.batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(batch[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
