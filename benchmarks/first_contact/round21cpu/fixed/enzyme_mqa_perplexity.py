"""Scores held-out enzyme sequences with a small decoder that shares one key head (multi-query)."""
from __future__ import annotations

import functools
import math
from typing import Iterator, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RESIDUES = 32
CONTEXT = 256


class Shape(NamedTuple):
    width: int = 256
    heads: int = 8
    layers: int = 2

    @property
    def head(self) -> int:
        return self.width // self.heads


class SharedKeyAttention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.project = nn.Linear(shape.width, shape.width + 2 * shape.head, bias=False)
        self.merge = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        s = self.shape
        query, key, value = self.project(x).split([s.width, s.head, s.head], dim=-1)
        query = query.unflatten(-1, (s.heads, s.head)).transpose(1, 2)
        key, value = key.unsqueeze(1).expand_as(query), value.unsqueeze(1).expand_as(query)
        read = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.merge(read.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(shape.width), SharedKeyAttention(shape))
        self.digest = nn.Sequential(
            nn.LayerNorm(shape.width),
            nn.Linear(shape.width, 3 * shape.width),
            nn.ReLU(),
            nn.Linear(3 * shape.width, shape.width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.digest(x)


class Decoder(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.residue = nn.Embedding(RESIDUES, shape.width)
        self.position = nn.Embedding(CONTEXT, shape.width)
        self.layers = nn.Sequential(*(Layer(shape) for _ in range(shape.layers)))
        self.out = nn.Sequential(nn.LayerNorm(shape.width), nn.Linear(shape.width, RESIDUES))

    def forward(self, chain: Tensor) -> Tensor:
        return self.out(self.layers(self.residue(chain) + self.position.weight))


def held_out(chains: int, rows: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(seed)
    motif = torch.randint(RESIDUES, (16, CONTEXT + 1), generator=g)
    family = torch.randint(16, (chains,), generator=g)
    mutated = torch.rand(chains, CONTEXT + 1, generator=g) < 0.2
    noise = torch.randint(RESIDUES, (chains, CONTEXT + 1), generator=g)
    text = torch.where(mutated, noise, motif[family])
    for part in text.split(rows):
        yield part[:, :-1], part[:, 1:]


class Tally:
    def __init__(self) -> None:
        self.nats = torch.zeros(())
        self.right = torch.zeros((), dtype=torch.long)
        self.residues = 0

    def add(self, scores: Tensor, truth: Tensor) -> None:
        flat, truth = scores.flatten(0, 1), truth.flatten()
        self.nats += F.cross_entropy(flat, truth, reduction="sum")
        self.right += (flat.argmax(1) == truth).sum()
        self.residues += truth.numel()

    def __str__(self) -> str:
        perplexity = math.exp(self.nats.item() / self.residues)
        return f"perplexity {perplexity:.4f}, accuracy {self.right.item() / self.residues:.4%}"


def every(count: int):
    def wrap(report):
        calls = 0

        @functools.wraps(report)
        def quiet(*args):
            nonlocal calls
            calls += 1
            if calls % count == 0:
                report(calls, *args)

        return quiet

    return wrap


@every(50)
def show(batch: int, tally: Tally) -> None:
    print(f"batch {batch}: {tally}", flush=True)


@torch.inference_mode()
def evaluate(model: nn.Module, batches: Iterator[tuple[Tensor, Tensor]]) -> Tally:
    tally = Tally()
    for chain, following in batches:
        tally.add(model(chain), following)
        show(tally)
    return tally


if __name__ == "__main__":
    torch.manual_seed(8)
    decoder = Decoder(Shape()).eval()
    print("held out:", evaluate(decoder, held_out(chains=1500, rows=3, seed=9)))
