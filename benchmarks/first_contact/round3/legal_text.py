import os
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn, einsum

# ---------------------------------------------------------------- helpers


def exists(v):
    return v is not None


def default(v, d):
    return v if exists(v) else d


def env(small, full):
    return small if os.environ.get("SMALL") else full


# ---------------------------------------------------------------- modules


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma  # flaw: hand-written-norm


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = Norm(dim)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x)) + x


class FeedForward(nn.Module):
    def __init__(self, dim, mult=None):
        super().__init__()
        inner = dim * default(mult, 2)
        self.inp = nn.Linear(dim, inner, bias=False)
        self.out = nn.Linear(inner, dim, bias=False)

    def forward(self, x):
        return self.out(F.silu(self.inp(x)))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(o.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, *, tokens, dim, depth, heads):
        super().__init__()
        self.emb = nn.Embedding(tokens, dim)
        wrap = partial(PreNorm, dim)
        self.net = nn.Sequential(
            *[m for _ in range(depth) for m in (wrap(Attention(dim, heads)), wrap(FeedForward(dim)))], Norm(dim)
        )
        self.logits = nn.Linear(dim, tokens, bias=False)

    def forward(self, seq):
        x, y = seq[:, :-1], seq[:, 1:]
        return F.cross_entropy(self.logits(self.net(self.emb(x))).transpose(1, 2), y)


# ---------------------------------------------------------------- training

device = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, LENGTH, STEPS = env(2, 32), env(32, 512), env(30, 90)
model = Transformer(tokens=env(128, 4096), dim=env(64, 768), depth=env(2, 8), heads=env(2, 12)).to(device)
optim = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
corpus = torch.randint(env(128, 4096), (BATCH * 40, LENGTH + 1), device=device)

for i in range(STEPS):
    seq = corpus.narrow(0, (i % 40) * BATCH, BATCH)
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = model(seq)
    loss.backward()
    optim.step()
    optim.zero_grad()
    if i % 30 == 29:
        print(f"{i + 1}: {loss.item():.3f}")
