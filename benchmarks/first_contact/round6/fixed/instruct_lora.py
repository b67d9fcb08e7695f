"""Fine-tunes low-rank adapters of a decoder on synthetic instructions."""
import math
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Spec:
    vocab: int = 32000
    dim: int = 1024
    heads: int = 16
    depth: int = 8
    rank: int = 16
    batch: int = 8
    length: int = 1024
    steps: int = 60

    @classmethod
    def tiny(cls):
        return cls(vocab=300, dim=32, heads=2, depth=1, rank=2, batch=2, length=16, steps=30)


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)


class Layer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.n1, self.n2 = nn.LayerNorm(s.dim), nn.LayerNorm(s.dim)
        self.qkv = nn.Linear(s.dim, 3 * s.dim)
        self.out = nn.Linear(s.dim, s.dim)
        self.up = nn.Linear(s.dim, 4 * s.dim)
        self.down = nn.Linear(4 * s.dim, s.dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embed = nn.Embedding(s.vocab, s.dim)
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.depth))
        self.norm = nn.LayerNorm(s.dim)
        self.head = nn.Linear(s.dim, s.vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def adapt(model, s):
    """Wraps the projections and returns the parameters that are to be trained."""
    trainable = []
    for layer in model.layers:
        for name in ("qkv", "out", "up", "down"):
            wrapped = LowRank(getattr(layer, name), s.rank).to(model.head.weight.device)
            setattr(layer, name, wrapped)
            trainable += [wrapped.down, wrapped.up]
    return trainable


def instructions(s, device):
    g = torch.Generator(device).manual_seed(1)
    for _ in range(s.steps):
        block = torch.randint(s.vocab, (s.batch, s.length + 1), generator=g, device=device)
        yield block[:, :-1], block[:, 1:]


def main():
    s = Spec.tiny() if os.environ.get("SMALL") else Spec()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = Decoder(s).to(device, torch.bfloat16).requires_grad_(False)
    trainable = adapt(model, s)
    opt = torch.optim.AdamW(trainable, lr=1e-3, fused=True)
    for i, (x, y) in enumerate(instructions(s, device)):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(f"[{i:3d}] {loss.item():.4f}")


if __name__ == "__main__":
    main()
