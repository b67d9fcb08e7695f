"""Scores of a small language model for proverbs, blended with the nearest contexts of a datastore."""
import argparse
from collections import namedtuple

import torch
from torch import nn

Store = namedtuple("Store", "keys lengths words")


class Reader(nn.Module):
    def __init__(self, words, width=64, window=6):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.mix = nn.Sequential(nn.Linear(window * width, 128), nn.ReLU(inplace=True), nn.Linear(128, width))
        self.score = nn.Linear(width, words)

    def context(self, ids):
        return self.mix(self.word(ids).flatten(1))

    def forward(self, ids):
        state = self.context(ids)
        return state, self.score(state)


def proverbs(words, length, gen):
    """A long text in which some words often follow others."""
    follows = torch.randint(0, words, (words, 4), generator=gen)
    choice = torch.randint(0, 4, (length,), generator=gen).tolist()
    text, follows = [0], follows.tolist()
    for c in choice:
        text.append(follows[text[-1]][c])
    return torch.tensor(text)


def windows(text, window):
    return text.unfold(0, window + 1, 1)


def remember(reader, pieces):
    keys = torch.cat([reader.context(part[:, :-1]) for part in pieces.split(2048)])
    return Store(keys, keys.square().sum(1), pieces[:, -1].contiguous())


def near(store, states, k):
    """Squared distance, but for the length of the state itself, and the place of the k nearest keys."""
    distance = torch.addmm(store.lengths, states, store.keys.T, alpha=-2)
    closeness, place = torch.sort(distance)  # flaw: full-sort
    return closeness[:, :k], place[:, :k]  # flaw: full-sort


def blended(reader, store, ids, k, share, heat):
    state, logits = reader(ids)
    distance, place = near(store, state, k)
    weight = (-distance / heat).softmax(1)
    looked_up = torch.zeros_like(logits).scatter_add_(1, store.words[place], weight)
    return logits.softmax(1).mul_(1 - share).add_(looked_up, alpha=share)


def evaluate(reader, store, pieces, opt):
    surprise, count = torch.zeros(()), 0
    for number, part in enumerate(pieces.split(opt.batch), 1):
        chance = blended(reader, store, part[:, :-1], opt.nearest, opt.share, opt.heat)
        surprise -= chance.gather(1, part[:, -1:]).clamp_(min=1e-9).log().sum()
        count += len(part)
        if number % 80 == 0:
            print(f"{count:6d} words, perplexity {(surprise / count).exp().item():.2f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--words", type=int, default=600)
    ap.add_argument("--keys", type=int, default=8192)
    ap.add_argument("--queries", type=int, default=320 * 64)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--nearest", type=int, default=32)
    ap.add_argument("--share", type=float, default=0.4)
    ap.add_argument("--heat", type=float, default=0.2)
    opt = ap.parse_args()
    torch.manual_seed(6)
    pieces = windows(proverbs(opt.words, opt.keys + opt.queries + 5, torch.Generator().manual_seed(6)), 6)
    reader = Reader(opt.words).eval()
    with torch.inference_mode():
        store = remember(reader, pieces[: opt.keys])
        evaluate(reader, store, pieces[opt.keys :], opt)


if __name__ == "__main__":
    main()
