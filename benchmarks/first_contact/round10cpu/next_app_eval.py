"""Evaluate a next-app predictor: hit rate of the last position over all held-out users."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class NextApp(nn.Module):
    """SASRec-like: causal transformer over the last apps that a user opened."""

    def __init__(self, apps, length, dim=64, heads=2, layers=2):
        super().__init__()
        self.apps = nn.Embedding(apps, dim)
        self.positions = nn.Embedding(length, dim)
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(dim)

    def forward(self, history):
        x = self.apps(history) + self.positions.weight
        x = self.norm(self.layers(x))
        return x @ self.apps.weight.T  # flaw: unused-logits


def held_out_users(users, length, apps, seed):
    g = torch.Generator().manual_seed(seed)
    favourite = torch.randint(apps, (users, 6), generator=g)
    picks = torch.randint(6, (users, length + 1), generator=g)
    sequences = favourite.gather(1, picks)
    return sequences[:, :-1], sequences[:, -1]


@torch.inference_mode()
def evaluate(model, histories, answers, batch_size, k):
    model.eval()
    hits = torch.zeros((), dtype=torch.long)
    reciprocal = torch.zeros(())
    for history, answer in zip(histories.split(batch_size), answers.split(batch_size)):
        scores = model(history)
        best = scores[:, -1].topk(k, dim=-1).indices  # flaw: unused-logits
        match = best == answer[:, None]
        hits += match.any(1).sum()
        reciprocal += (match / torch.arange(1, k + 1)).sum()
    return hits.item() / len(answers), reciprocal.item() / len(answers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=3200)
    parser.add_argument("--apps", type=int, default=8000)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--k", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    histories, answers = held_out_users(args.users, args.length, args.apps, seed=1)
    model = NextApp(args.apps, args.length)
    hit_rate, mrr = evaluate(model, histories, answers, args.batch_size, args.k)
    print(f"hit@{args.k} {hit_rate:.4f} mrr {mrr:.4f}")


if __name__ == "__main__":
    main()
