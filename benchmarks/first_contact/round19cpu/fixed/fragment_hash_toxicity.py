"""Toxicity end points from hashed circular fragments: a bag of fragment vectors per molecule and a shared trunk."""
from typing import Iterator, NamedTuple

import torch
from torch import Tensor, nn
import torch.nn.functional as F

SETTINGS = {
    "buckets": 220_000,
    "width": 24,
    "fragments": 40,
    "endpoints": 12,
    "molecules": 9_000,
    "batch": 192,
    "epochs": 14,
    "lr": 0.05,
}


class Batch(NamedTuple):
    fragments: Tensor
    weights: Tensor
    labels: Tensor
    known: Tensor


class FragmentTable(nn.Module):
    """A weighted sum of the vectors of a molecule's fragments, whose hashes fall into a fixed number of buckets."""

    def __init__(self, buckets: int, width: int):
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(buckets, width).normal_(std=0.05))

    def forward(self, fragments: Tensor, weights: Tensor) -> Tensor:
        return F.embedding_bag(fragments, self.vectors, mode="sum", per_sample_weights=weights, sparse=True)


class ToxicityModel(nn.Module):
    def __init__(self, buckets: int, width: int, endpoints: int):
        super().__init__()
        self.table = FragmentTable(buckets, width)
        self.trunk = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
            nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, endpoints),
        )

    def forward(self, batch: Batch) -> Tensor:
        return self.trunk(self.table(batch.fragments, batch.weights))


def library(settings: dict) -> Batch:
    gen = torch.Generator().manual_seed(8)
    count, buckets = settings["molecules"], settings["buckets"]
    skew = torch.rand(count, settings["fragments"], generator=gen) ** 3
    fragments = (skew * buckets).long()
    weights = 1.0 / (1.0 + torch.arange(settings["fragments"]).float()).sqrt().expand(count, -1)
    effect = torch.randn(buckets, settings["endpoints"], generator=gen)
    score = F.embedding_bag(fragments, effect, mode="sum", per_sample_weights=weights.contiguous())
    labels = (score > 1.0).float()
    known = (torch.rand(labels.shape, generator=gen) < 0.7).float()
    return Batch(fragments, weights.contiguous(), labels, known)


def batches(data: Batch, size: int, generator: torch.Generator) -> Iterator[Batch]:
    order = torch.randperm(len(data.labels), generator=generator)
    for rows in order.split(size)[: len(order) // size]:
        yield Batch(*(part[rows] for part in data))


def masked_loss(scores: Tensor, batch: Batch) -> Tensor:
    loss = F.binary_cross_entropy_with_logits(scores, batch.labels, weight=batch.known, reduction="sum")
    return loss / batch.known.sum().clamp(min=1)


def train(settings: dict) -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(4)
    data = library(settings)
    model = ToxicityModel(settings["buckets"], settings["width"], settings["endpoints"])
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    for epoch in range(settings["epochs"]):
        total, count = torch.zeros(()), 0
        for batch in batches(data, settings["batch"], generator):
            loss = masked_loss(model(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            count += 1
        print(f"epoch {epoch}  {count} steps  loss {total.item() / count:.4f}", flush=True)


if __name__ == "__main__":
    train(SETTINGS)
