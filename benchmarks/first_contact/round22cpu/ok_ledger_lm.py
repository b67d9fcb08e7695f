"""A small causal model of ledger entries (account, side, size class), with a schedule and clipping."""
import math
import time
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Shape(NamedTuple):
    vocab: int = 512
    dim: int = 128
    heads: int = 4
    depth: int = 3
    length: int = 128
    rows: int = 8
    steps: int = 260
    warm: int = 30
    peak: float = 1.5e-3


class CausalMixer(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mixer = CausalMixer(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.n1(x))
        return x + self.mlp(self.n2(x))


class Ledger(nn.Module):
    def __init__(self, s: Shape):
        super().__init__()
        self.entry = nn.Embedding(s.vocab, s.dim)
        self.place = nn.Parameter(torch.randn(s.length, s.dim) * 0.02)
        self.blocks = nn.Sequential(*(Block(s.dim, s.heads) for _ in range(s.depth)))
        self.norm = nn.LayerNorm(s.dim)
        self.head = nn.Linear(s.dim, s.vocab, bias=False)
        self.head.weight = self.entry.weight
        nn.init.normal_(self.entry.weight, std=0.05)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.entry(ids) + self.place)))


def bookings(s: Shape, count: int, seed: int) -> Tensor:
    """Every account has a few counter-accounts, mostly the same ones."""
    rng = torch.Generator().manual_seed(seed)
    partner = torch.randint(s.vocab, (s.vocab, 4), generator=rng)
    choice = torch.multinomial(torch.tensor([0.6, 0.25, 0.1, 0.05]), count * (s.length + 1), True, generator=rng)
    choice = choice.view(count, s.length + 1)
    rows = torch.empty(count, s.length + 1, dtype=torch.long)
    rows[:, 0] = torch.randint(s.vocab, (count,), generator=rng)
    for t in range(s.length):
        rows[:, t + 1] = partner[rows[:, t], choice[:, t]]
    return rows


def rate(s: Shape, step: int) -> float:
    if step < s.warm:
        return (step + 1) / s.warm
    return 0.5 + 0.5 * math.cos(math.pi * (step - s.warm) / (s.steps - s.warm))


def main(s: Shape = Shape()) -> None:
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    books = bookings(s, 768, 6).to(device)
    model = Ledger(s).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=s.peak, betas=(0.9, 0.95), fused=True)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: rate(s, step))
    heap, begin = torch.zeros((), device=device), time.perf_counter()
    for step in range(s.steps):
        batch = books[torch.randint(len(books), (s.rows,), device=device)]
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=device == "cuda"):
            scores = model(batch[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        heap += loss.detach()
        if step % 52 == 51:
            now = time.perf_counter()
            print(f"step {step + 1}: {heap.item() / 52:.4f} nats, {(now - begin) / 52 * 1e3:.1f} ms", flush=True)
            heap.zero_()
            begin = now


if __name__ == "__main__":
    main()
