"""Topic classifier over a stream of tokenised news, bag of hashed n-grams."""

import random

import torch
import torch.nn.functional as F

BUCKETS, TOPICS = 1 << 15, 16


class Article:
    """A parsed article: title and paragraphs as lists of tokens."""

    def __init__(self, g):
        self.topic = g.randrange(TOPICS)
        self.title = [self.topic * 50 + g.randrange(60) for _ in range(6)]
        self.paragraphs = [[g.randrange(5000) for _ in range(12)] for _ in range(3)]
        self.bag = torch.tensor(hashed(self))

    def tokens(self):
        yield from self.title
        for paragraph in self.paragraphs:
            yield from paragraph


def hashed(article):
    previous, out = 0, []
    for token in article.tokens():
        out.append(token % BUCKETS)
        out.append((token * 1_000_003 ^ previous * 7919) % BUCKETS)
        previous = token
    return out


def stream(articles, batch_size, g):
    while True:
        batch = g.sample(articles, batch_size)
        offsets = torch.tensor([0] + [len(a.bag) for a in batch[:-1]]).cumsum(0)
        topic = torch.tensor([a.topic for a in batch])
        yield torch.cat([a.bag for a in batch]), offsets, topic


def main(steps=220, batch_size=256, lr=0.5):
    torch.manual_seed(0)
    g = random.Random(0)
    articles = [Article(g) for _ in range(6_000)]
    bag = torch.nn.EmbeddingBag(BUCKETS, 32, mode="mean", sparse=True)
    head = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(32, TOPICS))
    sparse = torch.optim.SGD(bag.parameters(), lr=lr * 20)
    dense = torch.optim.SGD(head.parameters(), lr=lr, fused=True)

    hits = seen = 0
    for step, (flat, offsets, topic) in enumerate(stream(articles, batch_size, g), 1):
        logits = head(bag(flat, offsets))
        loss = F.cross_entropy(logits, topic)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        hits += int((logits.detach().argmax(1) == topic).sum())
        seen += len(topic)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f} accuracy {hits / seen:.3f}")
            hits = seen = 0
        if step == steps:
            break


if __name__ == "__main__":
    main()
