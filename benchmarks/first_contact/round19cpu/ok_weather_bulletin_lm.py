#!/usr/bin/env python3
# A recurrent language model of shipping forecasts, trained on one long stream of words.

import itertools
import math
import random

import torch
import torch.nn as nn

AREAS = "viking forties cromarty forth tyne dogger fisher german humber thames dover wight portland".split()
WINDS = "northerly southerly easterly westerly cyclonic variable".split()
FORCE = "three four five six seven eight".split()
SEA = "slight moderate rough".split()
SKY = "fair rain showers fog drizzle thundery".split()
VISIBILITY = "good moderate poor".split()


def bulletin(rng):
    where = rng.sample(AREAS, rng.randint(1, 3))
    force = rng.randrange(len(FORCE) - 1)
    yield from where
    yield from (rng.choice(WINDS), FORCE[force], "to", FORCE[force + 1])
    yield from ("sea", SEA[min(force // 2, 2)], "weather", sky := rng.choice(SKY))
    yield from ("visibility", VISIBILITY[2 if sky == "fog" else rng.randrange(2)], "end")


def stream(words, seed):
    rng = random.Random(seed)
    endless = itertools.chain.from_iterable(bulletin(rng) for _ in itertools.count())
    return list(itertools.islice(endless, words))


class Forecaster(nn.Module):
    def __init__(self, vocabulary, width=96, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.recur = nn.GRU(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, ids, state):
        out, state = self.recur(self.embed(ids), state)
        return self.head(out), state.detach()


def columns(ids, rows, span):
    """The stream in equal rows, cut into spans; each span goes on where the last one ended."""
    length = (len(ids) - 1) // rows
    given = ids[: rows * length].view(rows, length)
    asked = ids[1 : rows * length + 1].view(rows, length)
    for at in range(0, length - span + 1, span):
        yield given[:, at : at + span], asked[:, at : at + span]


text = stream(61_000, seed=77)
words = sorted(set(text))
number = {word: n for n, word in enumerate(words)}
ids = torch.tensor([number[word] for word in text])

torch.manual_seed(77)
model = Forecaster(len(words))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)

for sweep in range(4):
    state, total, seen = None, 0.0, 0
    for given, asked in columns(ids, rows=16, span=40):
        scores, state = model(given, state)
        loss = criterion(scores.flatten(0, 1), asked.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        seen += 1
    print(f"sweep {sweep}: {seen} spans, perplexity {math.exp(total / seen):.2f}")
