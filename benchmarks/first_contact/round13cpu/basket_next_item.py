"""Next item in a shopping session: GRU over clicks, scored against the whole shelf."""
from typing import NamedTuple

import torch
from torch import nn


class Shelf(NamedTuple):
    items: int = 6000
    width: int = 64
    clicks: int = 24
    batch: int = 32


class SequenceTower(nn.Module):
    """Base for models which read a sequence of items and score each item of the shelf."""

    def __init__(self, shelf):
        super().__init__()
        self.items = nn.Embedding(shelf.items, shelf.width)
        self.score = nn.Linear(shelf.width, shelf.items)

    def encode(self, clicks):
        raise NotImplementedError

    def forward(self, clicks):
        return self.score(self.encode(clicks))  # flaw: unused-logits


class GRUTower(SequenceTower):
    def __init__(self, shelf):
        super().__init__(shelf)
        self.rnn = nn.GRU(shelf.width, shelf.width, batch_first=True)

    def encode(self, clicks):
        return self.rnn(self.items(clicks))[0]


def sessions(shelf, count, generator):
    for _ in range(count):
        first = torch.randint(shelf.items, (shelf.batch, 1), generator=generator)
        taste = torch.randint(1, 30, (shelf.batch, 1), generator=generator)
        walk = (first + taste * torch.arange(shelf.clicks + 1)) % shelf.items
        yield walk[:, :-1], walk[:, -1]


def recommend(model, feed, top=10):
    found, total = 0.0, 0
    for clicks, bought in feed:
        ranked = model(clicks)[:, -1].topk(top, dim=-1)  # flaw: unused-logits
        found += float(ranked.values.mean())
        total += int((ranked.indices == bought[:, None]).sum())
    return found, total


def main(shelf=Shelf(), requests=300):
    torch.manual_seed(13)
    model = GRUTower(shelf).eval()
    with torch.inference_mode():
        found, total = recommend(model, sessions(shelf, requests, torch.Generator().manual_seed(5)))
    print(f"mean score {found / requests:.5f} hits {total}")


if __name__ == "__main__":
    main()
