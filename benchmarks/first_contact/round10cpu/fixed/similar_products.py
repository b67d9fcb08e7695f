"""Retrieval service: find the products most similar to a query embedding."""

import queue
import threading
from dataclasses import dataclass, field

import torch
from torch.nn.functional import normalize


@dataclass
class Query:
    vectors: torch.Tensor
    limit: int
    answer: "queue.Queue" = field(default_factory=lambda: queue.Queue(maxsize=1))


class ProductIndex:
    def __init__(self, vectors, names):
        self.vectors = normalize(vectors, dim=1)
        self.names = names

    def lookup(self, vectors, limit):
        scores = normalize(vectors, dim=1) @ self.vectors.T
        values, best = scores.topk(limit, dim=1)
        return best, values


class Service(threading.Thread):
    def __init__(self, index):
        super().__init__(daemon=True)
        self.index = index
        self.queries = queue.Queue(maxsize=8)
        self.served = 0

    @torch.inference_mode()
    def run(self):
        while True:
            query = self.queries.get()
            if query is None:
                return
            best, scores = self.index.lookup(query.vectors, query.limit)
            names = [[self.index.names[i] for i in row] for row in best.tolist()]
            query.answer.put((names, scores))
            self.served += len(names)


def main():
    torch.manual_seed(0)
    count = 40_000
    names = [f"sku-{i:06d}" for i in range(count)]
    index = ProductIndex(torch.randn(count, 64), names)
    service = Service(index)
    service.start()
    total = 0.0
    for _ in range(120):
        query = Query(torch.randn(16, 64), limit=10)
        service.queries.put(query)
        found, scores = query.answer.get()
        total += scores[:, 0].mean().item()
    service.queries.put(None)
    service.join()
    print(f"served {service.served}, mean best score {total / 120:.4f}, last {found[0][:3]}")


if __name__ == "__main__":
    main()
