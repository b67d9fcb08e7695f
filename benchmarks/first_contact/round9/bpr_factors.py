"""Bayesian personalised ranking: matrix factorisation of implicit feedback, trained with SGD."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class BPR(nn.Module):
    def __init__(self, users, items, factors):
        super().__init__()
        self.user = nn.Embedding(users, factors)  # flaw: dense-embedding-gradient
        self.item = nn.Embedding(items, factors)  # flaw: dense-embedding-gradient
        nn.init.normal_(self.user.weight, std=0.01)
        nn.init.normal_(self.item.weight, std=0.01)

    def forward(self, user, liked, other):
        u, i, j = self.user(user), self.item(liked), self.item(other)
        margin = torch.linalg.vecdot(u, i - j)
        penalty = (u.square().sum() + i.square().sum() + j.square().sum()) / len(user)
        return margin, penalty


class Interactions:
    """Observed (user, item) pairs, on the device, shuffled once per epoch."""

    def __init__(self, users, items, count, device):
        self.items = items
        self.device = device
        self.pairs = torch.stack(
            [
                torch.randint(users, (count,), device=device),
                torch.randint(items, (count,), device=device),
            ]
        )

    def epoch(self, batch):
        order = torch.randperm(self.pairs.size(1), device=self.device)
        for lo in range(0, len(order) - batch + 1, batch):
            user, liked = self.pairs[:, order[lo : lo + batch]]
            yield user, liked, torch.randint(self.items, (batch,), device=self.device)


def build_parser():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5_000_000 if gpu else 500)
    parser.add_argument("--items", type=int, default=3_000_000 if gpu else 300)
    parser.add_argument("--pairs", type=int, default=25_000_000 if gpu else 2_000)
    parser.add_argument("--factors", type=int, default=128 if gpu else 16)
    parser.add_argument("--batch-size", type=int, default=131_072 if gpu else 256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--reg", type=float, default=1e-4)
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    return parser


def train(args):
    data = Interactions(args.users, args.items, args.pairs, args.device)
    with torch.device(args.device):
        model = BPR(args.users, args.items, args.factors)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * args.batch_size)
    for epoch in range(args.epochs):
        total = torch.zeros((), device=args.device)
        right = torch.zeros((), device=args.device)
        batches = 0
        for user, liked, other in data.epoch(args.batch_size):
            margin, penalty = model(user, liked, other)
            loss = -F.logsigmoid(margin).mean() + args.reg * penalty
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach()
            right += (margin.detach() > 0).float().mean()
            batches += 1
        print(f"epoch {epoch}: loss {total.item() / batches:.4f}, AUC {right.item() / batches:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(build_parser().parse_args())
