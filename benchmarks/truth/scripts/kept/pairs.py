"""Skip-gram with negative samples: pairs are drawn in Python, the table is an nn.Embedding."""

import random

import torch
from torch import nn

noise = random.Random(1)
corpus = [noise.randrange(5000) for _ in range(20000)]


def draw(count, window=3):
    centres, contexts = [], []
    while len(centres) < count:
        at = noise.randrange(window, len(corpus) - window)
        for shift in range(-window, window + 1):
            if shift:
                centres.append(corpus[at])
                contexts.append(corpus[at + shift])
    return centres, contexts


class SkipGram(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.inside = nn.Embedding(words, width)
        self.outside = nn.Embedding(words, width)

    def forward(self, centre, context, negatives):
        v = self.inside(centre)
        good = (v * self.outside(context)).sum(-1)
        bad = torch.bmm(self.outside(negatives), v.unsqueeze(-1)).squeeze(-1)
        return -(nn.functional.logsigmoid(good).mean() + nn.functional.logsigmoid(-bad).mean())


model = SkipGram(5000, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    centres, contexts = draw(2000)
    negatives = torch.randint(0, 5000, (len(centres), 8))
    loss = model(torch.tensor(centres), torch.tensor(contexts), negatives)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
