# world model: every frame is a handful of tokens, and tokens see their own frame's past and all before
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

SMALL = bool(os.environ.get("SMALL"))
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def register(table):
    def put(cls):
        table[cls.__name__.lower()] = cls
        return cls

    return put


MIXERS, MODELS = {}, {}


class Order:
    """Who may look at whom."""

    def __init__(self, length, device):
        self.length, self.device = length, device

    def arguments(self):
        return {"is_causal": True}


@register(MIXERS)
class Heads(nn.Module):
    def __init__(self, dim, head=64):
        super().__init__()
        self.n = max(1, dim // head)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, order):
        q, k, v = self.qkv(x).unflatten(2, (3, self.n, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, **order.arguments())
        return self.out(y.transpose(1, 2).flatten(2))


@register(MODELS)
class World(nn.Module):
    def __init__(self, dim, depth, length, symbols, mixer):
        super().__init__()
        self.symbols = nn.Embedding(symbols, dim)
        self.place = nn.Embedding(length, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth + 1))
        self.mixers = nn.ModuleList(MIXERS[mixer](dim) for _ in range(depth))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth)
        )
        self.head = nn.Linear(dim, symbols)
        self.order = Order(length, dev)

    def forward(self, tokens):
        x = self.symbols(tokens) + self.place.weight
        for i, (mix, mlp) in enumerate(zip(self.mixers, self.mlps)):
            x = x + mix(self.norms[2 * i](x), self.order)
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x))


def episodes(batch, length, symbols):
    while True:
        x = torch.randint(symbols, (batch, length + 1), device=dev)
        yield x[:, :-1], x[:, 1:]


def main(steps=30 if SMALL else 70):
    torch.manual_seed(0)
    batch, length, symbols = (2, 32, 64) if SMALL else (8, 4096, 1024)
    model = MODELS["world"](32 if SMALL else 512, 1 if SMALL else 6, length, symbols, "heads").to(dev)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    ema = torch.zeros((), device=dev)
    for step, (x, y) in zip(range(1, steps + 1), episodes(batch, length, symbols)):
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.lerp_(loss.detach(), 0.05)
        if step == steps:
            print(step, ema.item())
    return 0


if __name__ == "__main__":
    sys.exit(main())
