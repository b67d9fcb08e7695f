"""Offline evaluation of a matrix-factorisation recommender: Recall@K and NDCG@K."""

import argparse
import math

import torch

METRICS = {}


def metric(name):
    def register(fn):
        METRICS[name] = fn
        return fn

    return register


@metric("recall")
def recall(hits, relevant, k):
    return hits.sum(1) / relevant.clamp(max=k)


@metric("ndcg")
def ndcg(hits, relevant, k):
    discount = 1 / torch.log2(torch.arange(k, device=hits.device) + 2.0)
    ideal = discount.cumsum(0)[relevant.clamp(max=k).long() - 1]
    return (hits * discount).sum(1) / ideal


@metric("mrr")
def mrr(hits, relevant, k):
    rank = torch.arange(1, k + 1, device=hits.device)
    return (hits / rank).amax(1)


class Recommender:
    def __init__(self, users, items, dim, device):
        self.users = torch.randn(users, dim, device=device) / math.sqrt(dim)
        self.items = torch.randn(items, dim, device=device)
        self.bias = torch.randn(items, device=device) * 0.1

    def scores(self, rows):
        return torch.addmm(self.bias, self.users[rows], self.items.T)


def recommend(model, rows, seen, k):
    scores = model.scores(rows)
    scores.scatter_(1, seen, -torch.inf)
    return torch.topk(scores, k, dim=1).indices


@torch.inference_mode()
def evaluate(model, seen, held_out, batch, k):
    n = len(seen)
    totals = {name: torch.zeros((), device=seen.device) for name in METRICS}
    for start in range(0, n, batch):
        rows = slice(start, start + batch)
        top = recommend(model, rows, seen[rows], k)
        hits = (top[:, :, None] == held_out[rows][:, None, :]).any(-1).float()
        relevant = torch.full((len(top),), held_out.shape[1], device=top.device)
        for name, fn in METRICS.items():
            totals[name] += fn(hits, relevant, k).sum()
    return {name: (total / n).item() for name, total in totals.items()}


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=110_592 if gpu else 96)
    parser.add_argument("--items", type=int, default=150_000 if gpu else 500)
    parser.add_argument("--dim", type=int, default=256 if gpu else 16)
    parser.add_argument("--batch", type=int, default=1024 if gpu else 32)
    parser.add_argument("-k", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if gpu else "cpu")
    model = Recommender(args.users, args.items, args.dim, device)
    seen = torch.randint(args.items, (args.users, 50), device=device)
    held_out = torch.randint(args.items, (args.users, 10), device=device)
    for name, value in evaluate(model, seen, held_out, args.batch, args.k).items():
        print(f"{name}@{args.k}: {value:.5f}")


if __name__ == "__main__":
    main()
