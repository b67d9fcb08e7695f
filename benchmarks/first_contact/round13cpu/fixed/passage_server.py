"""Passage retrieval service: requests come from a queue, answers go to a sink."""
import queue
from contextlib import contextmanager

import torch
import torch.nn.functional as F


class Index:
    def __init__(self, passages, width, generator):
        self.vectors = F.normalize(torch.randn(passages, width, generator=generator), dim=1)
        self.freshness = torch.rand(passages, generator=generator) * 0.05

    def score(self, queries):
        return torch.addmm(self.freshness, queries, self.vectors.t())


class Ranking:
    def __init__(self, index, limit):
        self.index = index
        self.limit = limit

    def candidates(self, queries):
        scores = self.index.score(queries)
        return scores.topk(self.limit, dim=1)

    def answer(self, queries):
        values, places = self.candidates(queries)
        return places[:, :self.limit], values[:, :self.limit].softmax(dim=1)


@contextmanager
def traffic(requests, size, width, generator):
    inbox = queue.SimpleQueue()
    for _ in range(requests):
        inbox.put(F.normalize(torch.randn(size, width, generator=generator), dim=1))
    inbox.put(None)
    yield inbox


def serve(inbox, ranking):
    served, checksum, confidence = 0, 0, 0.0
    while (queries := inbox.get()) is not None:
        places, weights = ranking.answer(queries)
        served += len(places)
        checksum += int(places.sum())
        confidence += float(weights[:, 0].sum())
    return served, checksum, confidence / served


def main():
    generator = torch.Generator().manual_seed(12)
    width = 128
    ranking = Ranking(Index(30_000, width, generator), limit=20)
    with torch.inference_mode(), traffic(400, 16, width, generator) as inbox:
        served, checksum, confidence = serve(inbox, ranking)
    print(f"served {served} checksum {checksum} confidence {confidence:.6f}")


if __name__ == "__main__":
    main()
