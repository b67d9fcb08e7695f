"""Decoder-only pretraining with a small trainer class."""
from __future__ import annotations

import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALL = os.environ.get("SMALL") == "1"


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.inp = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.inp(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.a, self.n1 = SelfAttention(width, heads), nn.LayerNorm(width)
        self.f, self.n2 = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.a(self.n1(x))
        return x + self.f(self.n2(x))


class NewsModel(nn.Module):
    def __init__(self, vocab: int, width: int, heads: int, depth: int, length: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.last(self.layers(self.words(ids) + self.places)))


def nll(logits: Tensor, labels: Tensor) -> Tensor:
    logits = logits.float()  # flaw: hand-written-loss
    normalizer = torch.logsumexp(logits, dim=-1)  # flaw: hand-written-loss
    chosen = torch.gather(logits, -1, labels[..., None])[..., 0]  # flaw: hand-written-loss
    return torch.mean(normalizer - chosen)  # flaw: hand-written-loss


class Trainer:
    def __init__(self) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.vocab, self.length, self.batch = (256, 32, 2) if SMALL else (32768, 512, 16)
        shape = (64, 2, 2) if SMALL else (768, 12, 4)
        self.model = NewsModel(self.vocab, *shape, self.length).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=6e-4, weight_decay=0.1, fused=True)
        self.sched = torch.optim.lr_scheduler.LambdaLR(self.opt, lambda s: min(1.0, (s + 1) / 20))
        self.data = torch.randint(self.vocab, (32, self.batch, self.length + 1), device=self.device)

    def step(self, n: int) -> Tensor:
        block = self.data[n % len(self.data)]
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            logits = self.model(block[:, :-1])
        loss = nll(logits, block[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.sched.step()
        self.opt.zero_grad()
        return loss.detach()

    def run(self, steps: int) -> None:
        curve = [self.step(n) for n in range(steps)]
        print("first/last", *torch.stack(curve)[[0, -1]].tolist())


if __name__ == "__main__":
    Trainer().run(30 if SMALL else 90)
