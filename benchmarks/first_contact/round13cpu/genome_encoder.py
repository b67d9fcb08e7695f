"""Scores promoter sequences in windows with a small pretrained-style encoder (streaming inference with generators)."""
import math

import torch
from torch import nn

ALPHABET = "ACGTN"


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.merge = nn.Linear(dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.width)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(x)), self.split(self.to_v(x))
        score = q @ k.transpose(-2, -1) / math.sqrt(self.width)  # flaw: hand-written-attention
        mixed = torch.softmax(score, dim=-1) @ v  # flaw: hand-written-attention
        return self.merge(mixed.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = SelfAttention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(inplace=True), nn.Linear(2 * dim, dim))
        self.na, self.nf = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.attn(self.na(x))
        return x + self.ff(self.nf(x))


class PromoterScorer(nn.Module):
    def __init__(self, window, dim=64, heads=4, depth=2):
        super().__init__()
        self.base = nn.Embedding(len(ALPHABET), dim)
        self.place = nn.Parameter(torch.randn(window, dim) * 0.1)
        self.layers = nn.Sequential(*(EncoderLayer(dim, heads) for _ in range(depth)))
        self.score = nn.Linear(dim, 1)

    def forward(self, codes):
        return self.score(self.layers(self.base(codes) + self.place).mean(1)).squeeze(-1)


def chromosome(length, seed):
    gen = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, (length,), generator=gen)


def windows(sequence, window, stride, batch):
    view = sequence.unfold(0, window, stride)
    for chunk in view.split(batch):
        yield chunk


def scan(model, sequence, window, stride, batch):
    with torch.inference_mode():
        for chunk in windows(sequence, window, stride, batch):
            yield model(chunk)


def main(window=768, stride=256, batch=2, batches=600):
    torch.manual_seed(9)
    model = PromoterScorer(window).eval()
    sequence = chromosome(window + stride * (batch * batches - 1), 9)
    scores = torch.cat(list(scan(model, sequence, window, stride, batch)))
    print("windows", scores.numel(), "mean", round(float(scores.mean()), 4), "top", round(float(scores.max()), 4))


if __name__ == "__main__":
    main()
