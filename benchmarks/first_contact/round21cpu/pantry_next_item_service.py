"""Answers "what goes into the basket next?" for a grocery app.

Requests arrive in a queue; a worker takes micro-batches of sessions (the last 32 items of
each customer) and returns the five best next items.
"""
import logging
import queue
import time

import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("pantry")

ITEMS = 6144
SESSION = 32
WIDTH = 128
HEADS = 4


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.before_attention(x)).chunk(3, dim=-1)
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.feed(x)


class BasketModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(SESSION, WIDTH))
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.rank = nn.Linear(WIDTH, ITEMS)

    def encode(self, sessions: torch.Tensor) -> torch.Tensor:
        x = self.items(sessions) + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, sessions: torch.Tensor) -> torch.Tensor:
        return self.rank(self.encode(sessions))  # flaw: unused-logits


class Recommender:
    def __init__(self, model: nn.Module, best: int) -> None:
        self.model = model.eval()
        self.best = best

    @torch.inference_mode()
    def answer(self, sessions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.model(sessions)
        upcoming = scores.select(1, SESSION - 1)  # flaw: unused-logits
        upcoming = upcoming.scatter(1, sessions, float("-inf"))
        found = upcoming.topk(self.best, dim=1)
        return found.indices, found.values


def customers(count: int, micro_batch: int) -> "queue.SimpleQueue[torch.Tensor | None]":
    """A replayed day of traffic, already cut to the micro-batches of the gateway."""
    generator = torch.Generator().manual_seed(77)
    taste = torch.randint(0, ITEMS // 64, (count, 1), generator=generator)
    walk = torch.randint(0, 64, (count, SESSION), generator=generator)
    inbox: "queue.SimpleQueue[torch.Tensor | None]" = queue.SimpleQueue()
    for part in (taste * 64 + walk).split(micro_batch):
        inbox.put(part)
    inbox.put(None)
    return inbox


def serve(recommender: Recommender, inbox: "queue.SimpleQueue[torch.Tensor | None]") -> None:
    answered, checksum, confidence = 0, 0, torch.zeros(())
    began = time.perf_counter()
    batches = 0
    while (sessions := inbox.get()) is not None:
        items, scores = recommender.answer(sessions)
        answered += len(items)
        checksum = checksum + items.sum()
        confidence += scores.mean()
        batches += 1
        if batches % 80 == 0:
            rate = answered / (time.perf_counter() - began)
            log.info("%6d answered, mean score %.4f, checksum %d", answered, confidence.item() / batches, int(checksum))
            log.debug("%.0f sessions a second", rate)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    torch.manual_seed(3)
    serve(Recommender(BasketModel(), best=5), customers(count=48 * 320, micro_batch=48))
