"""Hashed bag-of-n-grams classifier that routes job adverts to trades (fastText style)."""
import argparse
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--buckets", type=int, default=240_000)
    p.add_argument("--dim", type=int, default=48)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--trades", type=int, default=64)
    p.add_argument("--adverts", type=int, default=6000)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=900)
    p.add_argument("--lr", type=float, default=0.3)
    p.add_argument("--seed", type=int, default=11)
    return p.parse_args()


SYLLABLES = ["ka", "mo", "ri", "tel", "san", "dor", "wen", "pli", "gru", "hax", "ob", "sti", "ne", "fal", "ju", "qui"]


def lexicon(rng, size):
    return ["".join(rng.choice(SYLLABLES, rng.integers(2, 5))) for _ in range(size)]


def hashed(words, buckets):
    grams = list(words) + [a + "_" + b for a, b in zip(words, words[1:])]
    return [zlib.crc32(g.encode()) % buckets for g in grams]


def make_corpus(args):
    rng = np.random.default_rng(args.seed)
    words = lexicon(rng, 5000)
    topics = rng.integers(0, len(words), (args.trades, 60))
    bags, trades = [], rng.integers(0, args.trades, args.adverts)
    for trade in trades:
        own = topics[trade][rng.integers(0, 60, 10)]
        filler = rng.integers(0, len(words), 15)
        text = [words[i] for i in rng.permutation(np.concatenate([own, filler]))]
        bags.append(hashed(text, args.buckets))
    return torch.tensor(bags), torch.from_numpy(trades)


class TradeRouter(nn.Module):
    def __init__(self, buckets, dim, hidden, trades):
        super().__init__()
        self.grams = nn.EmbeddingBag(buckets, dim, mode="sum", sparse=True)
        nn.init.uniform_(self.grams.weight, -0.1, 0.1)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, trades))

    def forward(self, bags):
        return self.mlp(self.grams(bags))


def index_stream(total, batch, generator):
    while True:
        order = torch.randperm(total, generator=generator)
        yield from order[: total - total % batch].split(batch)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    bags, trades = make_corpus(args)
    held = len(bags) // 10
    train_bags, train_trades = bags[held:], trades[held:]

    model = TradeRouter(args.buckets, args.dim, args.hidden, args.trades)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    stream = index_stream(len(train_bags), args.batch, torch.Generator().manual_seed(args.seed))

    running = torch.zeros(())
    for step in range(1, args.steps + 1):
        rows = next(stream)
        loss = F.cross_entropy(model(train_bags[rows]), train_trades[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 75 == 0:
            with torch.inference_mode():
                hit = (model(bags[:held]).argmax(1) == trades[:held]).float().mean()
            print(f"step {step:5d}  loss {running.item() / 75:.4f}  held-out accuracy {hit.item():.3f}")
            running.zero_()


if __name__ == "__main__":
    main()
