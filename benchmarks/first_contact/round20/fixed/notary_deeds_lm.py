"""A language model for notaries' deeds, trained with accumulated gradients."""

from dataclasses import dataclass, field
import time

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Shape:
    tokens: int = 8192
    length: int = 256
    width: int = 512
    heads: int = 8
    depth: int = 8


@dataclass
class Plan:
    shape: Shape = field(default_factory=Shape)
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    rows: int = 64
    parts: int = 1
    updates: int = 320
    lr: float = 5e-4
    seed: int = 1863


class Deeds:
    """Formulas that come again and again, with names and sums in between."""

    def __init__(self, plan):
        shape = plan.shape
        rng = torch.Generator(device=plan.device).manual_seed(plan.seed)
        formulas = torch.randint(shape.tokens, (256, 16), generator=rng, device=plan.device)
        order = torch.randint(256, (2560, shape.length // 16 + 1), generator=rng, device=plan.device)
        ids = formulas[order].flatten(1)[:, : shape.length + 1].clone()
        ids[:, ::11] = torch.randint(shape.tokens, ids[:, ::11].shape, generator=rng, device=plan.device)
        self.inputs, self.wanted = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()

    def parts(self, rows):
        while True:
            yield from zip(self.inputs.split(rows), self.wanted.split(rows))


class Clause(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.up = nn.Linear(shape.width, 4 * shape.width)
        self.down = nn.Linear(4 * shape.width, shape.width)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Notary(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.tokens = nn.Embedding(shape.tokens, shape.width)
        self.places = nn.Parameter(torch.zeros(shape.length, shape.width))
        self.clauses = nn.Sequential(*[Clause(shape) for _ in range(shape.depth)])
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.tokens, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, ids):
        return self.head(self.norm(self.clauses(self.tokens(ids) + self.places)))


def train(plan):
    torch.manual_seed(plan.seed)
    model = Notary(plan.shape).to(plan.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.lr, betas=(0.9, 0.95), fused=True)
    parts = Deeds(plan).parts(plan.rows)
    began = time.perf_counter()
    for update in range(1, plan.updates + 1):
        total = torch.zeros((), device=plan.device)
        for _ in range(plan.parts):
            ids, wanted = next(parts)
            with torch.autocast(plan.device, dtype=torch.bfloat16):
                scores = model(ids)
                loss = F.cross_entropy(scores.flatten(0, 1), wanted.flatten()) / plan.parts
            loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        if update % 80 == 0:
            print(f"update {update}: {total.item():.3f}, {(time.perf_counter() - began) / update * 1e3:.1f} ms each")


if __name__ == "__main__":
    train(Plan())
