"""Sorting the complaints of ferry passengers into departments."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LONGEST = 120


def write_complaints(count, words, topics, rng):
    lengths = np.clip(rng.lognormal(3.1, 0.55, count).astype(int), 6, LONGEST)
    topic = rng.integers(0, topics, count)
    favourites = rng.integers(1, words, (topics, 60))
    texts = []
    for size, t in zip(lengths, topic):
        common = rng.integers(1, words, size)
        texts.append(np.where(rng.random(size) < 0.3, rng.choice(favourites[t], size), common))
    return texts, topic


class Deliveries:
    """Batches of complaints of about the same length."""

    def __init__(self, texts, topics, size, rng):
        self.texts, self.topics, self.size, self.rng = texts, topics, size, rng
        self.sizes = np.array([len(t) for t in texts])

    def __iter__(self):
        jitter = self.sizes + self.rng.random(len(self.sizes)) * 2
        chunks = np.argsort(jitter)[: len(self.texts) // self.size * self.size].reshape(-1, self.size)
        for rows in self.rng.permutation(chunks):
            yield self.pack(rows)

    def pack(self, rows):
        sheet = np.zeros((len(rows), self.sizes[rows].max()), np.int64)
        for line, row in zip(sheet, rows):
            line[: self.sizes[row]] = self.texts[row]
        return torch.from_numpy(sheet), torch.from_numpy(self.topics[rows])


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 3 * width), nn.ReLU(inplace=True), nn.Linear(3 * width, width))

    def forward(self, x, visible):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, c))
        return x + self.ff(self.n2(x))


class Sorter(nn.Module):
    def __init__(self, words, topics, width=64, depth=2):
        super().__init__()
        self.word = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(torch.randn(LONGEST, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(depth))
        self.head = nn.Linear(width, topics)

    def forward(self, ids):
        real = ids != 0
        x = self.word(ids) + self.place[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, real[:, None, None])
        weights = real.to(x.dtype)
        pooled = torch.bmm(weights[:, None], x)[:, 0] / weights.sum(1, keepdim=True)
        return self.head(pooled)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--batch", type=int, default=24)
    args = ap.parse_args()
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    texts, topics = write_complaints(1600, 1000, 8, rng)
    deliveries = Deliveries(texts, topics, args.batch, rng)
    model = Sorter(1000, 8)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(args.epochs):
        total, count = 0.0, 0
        for ids, topic in deliveries:
            loss = F.cross_entropy(model(ids), topic)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, count = total + loss.item(), count + 1
        print(f"epoch {epoch}: {count} batches, loss {total / count:.4f}")


if __name__ == "__main__":
    main()
