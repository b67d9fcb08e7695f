"""Embeddings of bags of words, tokenised in Python at each step."""

import re
from collections import Counter, defaultdict

import torch
from torch import nn

TEXTS = [" ".join(f"word{(i * j) % 301} and" for j in range(1, 60)) + "." for i in range(1, 65)]


class Tokens:
    def __init__(self):
        self.numbers = defaultdict(lambda: len(self.numbers) % 1000)
        self.pattern = re.compile(r"[a-z]+|\d+")

    def encode(self, text):
        words = self.pattern.findall(text.lower())
        return [self.numbers[word] for word in words]

    def batch(self, texts):
        numbers, offsets = [], []
        for text in texts:
            offsets.append(len(numbers))
            numbers.extend(self.encode(text))
        return torch.tensor(numbers), torch.tensor(offsets)


def common(texts):
    counter = Counter()
    for text in texts:
        counter.update(text.split())
    return {word: count for word, count in counter.most_common(50)}  # noqa: C416 - as people write it


tokens = Tokens()
bag = nn.EmbeddingBag(1000, 256)
net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 2))
optimizer = torch.optim.SGD([*bag.parameters(), *net.parameters()], lr=0.1)
target = torch.arange(64) % 2
while True:
    numbers, offsets = tokens.batch(TEXTS)
    frequent = common(TEXTS)
    logits = net(bag(numbers, offsets))
    loss = nn.functional.cross_entropy(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
