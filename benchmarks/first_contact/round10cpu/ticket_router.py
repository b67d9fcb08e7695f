"""Inference service that routes support tickets to teams; requests arrive in small groups."""

import gc
import logging
import random
from collections import Counter

import torch
from torch import nn

log = logging.getLogger("router")
TEAMS = ["billing", "shipping", "accounts", "hardware", "network", "returns", "sales", "legal"]


class TicketModel(nn.Module):
    def __init__(self, buckets=30_000, dim=128):
        super().__init__()
        self.bag = nn.EmbeddingBag(buckets, dim, mode="mean")
        self.layers = nn.Sequential(
            nn.Linear(dim, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, len(TEAMS)),
        )

    def forward(self, ids, offsets):
        return self.layers(self.bag(ids, offsets))


class Router:
    def __init__(self, model, buckets=30_000):
        self.model = model.eval()
        self.buckets = buckets
        self.counts = Counter()

    def encode(self, tickets):
        ids, offsets = [], []
        for text in tickets:
            offsets.append(len(ids))
            ids.extend(sum(map(ord, word)) * 31 % self.buckets for word in text.split())
        return torch.tensor(ids), torch.tensor(offsets)

    @torch.inference_mode()
    def route(self, tickets):
        logits = self.model(*self.encode(tickets))
        probabilities = logits.softmax(-1)
        confidence, team = probabilities.max(-1)
        return [
            {"team": TEAMS[t], "confidence": c}
            for t, c in zip(team.tolist(), confidence.tolist())
        ]

    def handle(self, tickets):
        answers = self.route(tickets)
        self.counts.update(answer["team"] for answer in answers)
        gc.collect()  # flaw: gc-pause-in-step
        return answers


def incoming(groups, rng):
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(3000)]
    for _ in range(groups):
        yield [" ".join(rng.choices(words, k=rng.randint(10, 60))) for _ in range(160)]


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)
    router = Router(TicketModel())
    for number, tickets in enumerate(incoming(90, random.Random(0)), 1):
        answers = router.handle(tickets)
        if number % 30 == 0:
            log.info("%d groups, last: %s", number, answers[-1]["team"])
    log.info("%s", sorted(router.counts.items()))


if __name__ == "__main__":
    main()
