# Several interests per reader of the bookmobile, found by soft routing over the reader's history.
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=450)
    ap.add_argument("--batch", type=int, default=40)
    ap.add_argument("--history", type=int, default=240)
    ap.add_argument("--books", type=int, default=4000)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--interests", type=int, default=4)
    ap.add_argument("--seed", type=int, default=3)
    return ap.parse_args()


class Shelves:
    """Readers who like a few shelves each, and borrow from them."""

    def __init__(self, opt, readers=1500):
        rng = np.random.default_rng(opt.seed)
        shelf = rng.integers(0, 40, opt.books)
        order = np.argsort(shelf, kind="stable")
        edges = np.searchsorted(shelf[order], np.arange(41))
        liked = rng.integers(0, 40, (readers, 3))
        pick = liked[np.arange(readers)[:, None], rng.integers(0, 3, (readers, opt.history + 1))]
        spot = edges[pick] + (rng.random(pick.shape) * (edges[pick + 1] - edges[pick])).astype(np.int64)
        self.loans = torch.from_numpy(order[spot])
        self.gen = torch.Generator().manual_seed(opt.seed)

    def batch(self, size):
        rows = torch.randint(len(self.loans), (size,), generator=self.gen)
        loans = self.loans[rows]
        return loans[:, :-1], loans[:, -1]


class MultiInterest(nn.Module):
    def __init__(self, opt, rounds=4):
        super().__init__()
        self.books = nn.Embedding(opt.books, opt.dim)
        nn.init.normal_(self.books.weight, std=0.1)
        self.seeds = nn.Parameter(torch.randn(opt.interests, opt.dim) * 0.3)
        self.mix = nn.Linear(opt.dim, opt.dim)
        self.rounds = rounds

    def agreement(self, interests, history):
        columns = history.permute(0, 2, 1)
        return torch.bmm(interests, columns)

    def forward(self, ids):
        history = self.books(ids)
        interests = self.seeds.expand(len(ids), -1, -1)
        for _ in range(self.rounds):
            share = self.agreement(interests, history).softmax(1)
            interests = F.normalize(torch.bmm(share, history), dim=-1)
        return interests + self.mix(interests)


def sampled_loss(net, interests, wanted):
    targets = net.books(wanted)
    closest = (interests * targets[:, None]).sum(-1).argmax(1)
    reader = interests[torch.arange(len(wanted)), closest]
    return F.cross_entropy(reader @ targets.T * 5, torch.arange(len(wanted)))


def main():
    opt = parse()
    torch.manual_seed(opt.seed)
    shelves = Shelves(opt)
    net = MultiInterest(opt)
    adam = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
    for step in range(opt.steps):
        ids, wanted = shelves.batch(opt.batch)
        loss = sampled_loss(net, net(ids), wanted)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 99:
            print(f"step {step + 1}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
