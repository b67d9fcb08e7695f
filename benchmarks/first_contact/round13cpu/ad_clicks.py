"""Click prediction on hashed ad features: a factorization machine with a bag of hashed ids per impression."""
from dataclasses import dataclass
from typing import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Settings:
    buckets: int = 300_000
    width: int = 32
    fields: int = 18
    batch: int = 1024
    steps: int = 360
    lr: float = 0.3
    sparse: bool = False  # flaw: dense-embedding-gradient


class FactorizationMachine(nn.Module):
    """Second-order interactions by the square-of-sum trick, and a small tower on top."""

    def __init__(self, s: Settings):
        super().__init__()
        self.factors = nn.Embedding(s.buckets, s.width, sparse=s.sparse)
        self.linear = nn.EmbeddingBag(s.buckets, 1, mode="sum", sparse=s.sparse)
        nn.init.normal_(self.factors.weight, std=0.05)
        nn.init.zeros_(self.linear.weight)
        self.tower = nn.Sequential(
            nn.Linear(s.fields * s.width, 128), nn.ReLU(),
            nn.Linear(128, 64), nn.ReLU(),
            nn.Linear(64, 1),
        )
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, ids: Tensor) -> Tensor:
        e = self.factors(ids)
        total = e.sum(1)
        pair = 0.5 * (total.square() - e.square().sum(1)).sum(-1)
        deep = self.tower(e.flatten(1)).squeeze(-1)
        return self.linear(ids).squeeze(-1) + pair + deep + self.bias


def impressions(s: Settings, gen: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    span = s.buckets // s.fields
    offsets = torch.arange(s.fields) * span
    taste = torch.randn(97, generator=gen)
    while True:
        u = torch.rand(s.batch, s.fields, generator=gen)
        ids = (u.pow(3) * span).long()
        logit = taste[ids % 97].mean(1) * 4.0
        click = torch.bernoulli(torch.sigmoid(logit), generator=gen)
        yield ids + offsets, click


def train(s: Settings) -> float:
    gen = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    model = FactorizationMachine(s)
    opt = torch.optim.SGD(model.parameters(), lr=s.lr)
    stream = impressions(s, gen)
    running = torch.zeros(())
    for step in range(s.steps):
        ids, click = next(stream)
        loss = F.binary_cross_entropy_with_logits(model(ids), click)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running.lerp_(loss.detach(), 0.05)
    return float(running)


if __name__ == "__main__":
    print(f"running loss {train(Settings()):.4f}")
