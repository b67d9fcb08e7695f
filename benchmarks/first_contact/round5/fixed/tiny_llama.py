"""Pre-train a small llama-style decoder on random tokens."""
import os
import math
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class ModelArgs:
    dim: int = 1280
    n_layers: int = 5
    n_heads: int = 20
    vocab: int = 8192
    seq_len: int = 1024
    ffn_ratio: float = 8 / 3


@dataclass
class TrainArgs:
    batch: int = 8
    steps: int = 70
    lr: float = 3e-4
    betas: tuple = field(default=(0.9, 0.95))


class SwiGLU(nn.Module):
    def __init__(self, args):
        super().__init__()
        hidden = 128 * math.ceil(args.ffn_ratio * args.dim / 128)
        self.w1 = nn.Linear(args.dim, hidden, bias=False)
        self.w3 = nn.Linear(args.dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, args.dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class CausalAttention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.h = args.n_heads
        self.wqkv = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.h, -1).transpose(1, 2) for t in self.wqkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attn, self.ffn = CausalAttention(args), SwiGLU(args)
        self.n1, self.n2 = nn.LayerNorm(args.dim, bias=False), nn.LayerNorm(args.dim, bias=False)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.ffn(self.n2(x))


class Decoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.emb = nn.Embedding(args.vocab, args.dim)
        self.pos = nn.Embedding(args.seq_len, args.dim)
        self.blocks = nn.Sequential(*[Block(args) for _ in range(args.n_layers)])
        self.norm = nn.LayerNorm(args.dim)
        self.head = nn.Linear(args.dim, args.vocab, bias=False)
        self.register_buffer("index", torch.arange(args.seq_len), persistent=False)

    def forward(self, ids, targets):
        x = self.emb(ids) + self.pos(self.index)
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main(margs: ModelArgs, targs: TrainArgs):
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model = Decoder(margs).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=targs.lr, betas=targs.betas, fused=True)
    corpus = torch.randint(margs.vocab, (targs.batch * 16, margs.seq_len + 1), device=dev)
    for it in range(targs.steps):
        rows = corpus[(it % 16) * targs.batch:][:targs.batch]
        with torch.autocast(dev, torch.bfloat16):
            loss = model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad()
        if it % 25 == 0:
            print(it, loss.item())


if __name__ == "__main__":
    if os.environ.get("SMALL") == "1":
        main(ModelArgs(dim=40, n_layers=1, n_heads=2, vocab=64, seq_len=32), TrainArgs(batch=2, steps=30))
    else:
        main(ModelArgs(), TrainArgs())
