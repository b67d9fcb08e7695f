"""Train a small decoder with linear position biases on synthetic stories."""
import argparse
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("SMALL") == "1"


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=2 if TINY else 6)
    p.add_argument("--dim", type=int, default=64 if TINY else 1024)
    p.add_argument("--heads", type=int, default=4 if TINY else 8)
    p.add_argument("--context", type=int, default=64 if TINY else 1024)
    p.add_argument("--batch", type=int, default=2 if TINY else 8)
    p.add_argument("--vocab", type=int, default=256 if TINY else 8192)
    p.add_argument("--iters", type=int, default=30 if TINY else 100)
    p.add_argument("--lr", type=float, default=3e-4)
    return p.parse_args()


def distance_bias(heads, length):
    slopes = torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)])
    pos = torch.arange(length)
    rel = (pos[None, :] - pos[:, None]).float()
    bias = slopes[:, None, None] * rel
    return bias.masked_fill(rel[None] > 0, float("-inf"))


class Reader(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wkv = nn.Linear(dim, 2 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def fold(self, t):
        b, n, d = t.shape
        return t.view(b, n, self.heads, d // self.heads).transpose(1, 2).reshape(b * self.heads, n, -1)

    def forward(self, x, bias):
        b, n, d = x.shape
        q = self.fold(self.wq(x))
        k, v = (self.fold(t) for t in self.wkv(x).chunk(2, dim=-1))
        energy = torch.baddbmm(bias, q, k.mT, alpha=1 / math.sqrt(q.shape[-1]))  # flaw: hand-written-attention
        share = torch.exp(energy - energy.logsumexp(-1, keepdim=True))  # flaw: hand-written-attention
        mixed = torch.bmm(share, v)  # flaw: hand-written-attention
        mixed = mixed.view(b, self.heads, n, -1).transpose(1, 2).reshape(b, n, d)
        return self.wo(mixed)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.read = Reader(dim, heads)
        self.think = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x, bias):
        x = x + self.read(self.n1(x), bias)
        return x + self.think(self.n2(x))


class Writer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok = nn.Embedding(a.vocab, a.dim)
        self.blocks = nn.ModuleList(Block(a.dim, a.heads) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.dim)
        self.out = nn.Linear(a.dim, a.vocab, bias=False)
        self.out.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids, bias):
        x = self.tok(ids)
        for blk in self.blocks:
            x = blk(x, bias)
        return self.out(self.norm(x))


def main():
    a = parse()
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(7)
    model = Writer(a).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=0.1, fused=True)
    stream = torch.randint(a.vocab, (200_000,), device=dev)
    span = torch.arange(a.context + 1, device=dev)
    bias = distance_bias(a.heads, a.context).to(dev, torch.bfloat16).repeat(a.batch, 1, 1)
    for it in range(a.iters):
        at = torch.randint(stream.numel() - a.context - 1, (a.batch, 1), device=dev)
        chunk = stream[at + span]
        with torch.autocast(dev.type, torch.bfloat16):
            logits = model(chunk[:, :-1], bias)
            loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        if it % 25 == 0:
            print(f"iter {it:4d}  loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
