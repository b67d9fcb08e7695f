"""Recall@k of a dense retriever: every query is scored against the whole collection."""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = "SMALL" in os.environ
DOCS, QUERIES, CHUNK, DIM = (500, 240, 8, 16) if tiny else (400_000, 64 * 80, 64, 256)
CUTOFFS = (1, 10, 100)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Index:
    def __init__(self, vectors):
        self.vectors = F.normalize(vectors, dim=1).to(torch.bfloat16)

    def scores(self, queries):
        return F.normalize(queries, dim=1).to(torch.bfloat16) @ self.vectors.T


class Ranking:
    """The best documents of each query, best first."""

    def __init__(self, depth):
        self.depth = depth

    def __call__(self, scores):
        return torch.argsort(scores, dim=1, descending=True)[:, : self.depth]  # flaw: none-yet(full-sort-for-topk)


class Recall:
    def __init__(self, cutoffs):
        self.hits = torch.zeros(len(cutoffs), device=device)
        self.cutoffs, self.n = cutoffs, 0

    def update(self, ranked, gold):
        found = ranked == gold[:, None]
        self.hits += torch.stack([found[:, :k].any(1).sum() for k in self.cutoffs])
        self.n += len(gold)

    def report(self):
        return {f"R@{k}": round(h / self.n, 4) for k, h in zip(self.cutoffs, self.hits.tolist())}


def main(out=sys.stdout):
    g = torch.Generator(device).manual_seed(0)
    docs = torch.randn(DOCS, DIM, device=device, generator=g)
    gold = torch.randint(DOCS, (QUERIES,), device=device, generator=g)
    queries = docs[gold] + 1.5 * torch.randn(QUERIES, DIM, device=device, generator=g)
    project = nn.Linear(DIM, DIM, bias=False).to(device)
    nn.init.eye_(project.weight)
    ranking, recall = Ranking(max(CUTOFFS)), Recall(CUTOFFS)
    with torch.inference_mode():
        index = Index(project(docs))
        for part, target in zip(queries.split(CHUNK), gold.split(CHUNK)):
            recall.update(ranking(index.scores(project(part))), target)
    print(recall.report(), file=out)


if __name__ == "__main__":
    main()
