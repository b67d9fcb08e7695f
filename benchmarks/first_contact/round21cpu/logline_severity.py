"""Predicts how bad a log line of a data centre is (transformer encoder over word pieces)."""
import math
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

VOCAB, PAD, LIMIT = 2048, 0, 128
LEVELS = ("debug", "info", "warning", "error")
CFG = dict(dim=64, heads=4, layers=2, batch=20, lr=1e-3, steps=363, report=33, seed=12)


def synth(rng, lines):
    """Templates of services, with a tail of long stack traces."""
    services = [[rng.randrange(1, VOCAB) for _ in range(40)] for _ in range(50)]
    for _ in range(lines):
        service = rng.choice(services)
        level = rng.randrange(len(LEVELS))
        length = min(LIMIT, max(6, int(math.exp(rng.gauss(3.1, 0.5)))))
        words = [rng.choice(service) for _ in range(length)]
        words[rng.randrange(length)] = 1 + 16 * level + rng.randrange(16)
        yield words, level


class Lines:
    def __init__(self, seed, lines=6000):
        rng = random.Random(seed)
        samples = list(synth(rng, lines))
        self.length = torch.tensor([len(words) for words, _ in samples])
        self.level = torch.tensor([level for _, level in samples])
        self.ids = torch.full((lines, LIMIT), PAD)
        for row, (words, _) in zip(self.ids, samples):
            row[: len(words)] = torch.tensor(words)

    def batches(self, size, g):
        """Lines of similar length together, in random order, forever."""
        while True:
            noise = torch.rand(len(self.length), generator=g)
            chunks = (self.length + noise).argsort().split(size)
            for i in torch.randperm(len(chunks), generator=g).tolist():
                rows = chunks[i]
                yield self.ids[rows], self.level[rows]  # flaw: padded-batches


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.pre, self.post = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, visible):
        b, t, c = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ff(self.post(x))


class Severity(nn.Module):
    def __init__(self, dim, heads, layers):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.places = nn.Embedding(LIMIT, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.head = nn.Linear(dim, len(LEVELS))

    def forward(self, ids):
        real = ids != PAD
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, real[:, None, None, :])
        weight = real.unsqueeze(-1).to(x.dtype)
        return self.head((x * weight).sum(1) / weight.sum(1))


def train(cfg):
    torch.manual_seed(cfg["seed"])
    lines = Lines(cfg["seed"])
    model = Severity(cfg["dim"], cfg["heads"], cfg["layers"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], fused=True)
    stream = lines.batches(cfg["batch"], torch.Generator().manual_seed(cfg["seed"]))
    total = torch.zeros(())
    for step in range(1, cfg["steps"] + 1):
        ids, level = next(stream)
        loss = cross_entropy(model(ids), level)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % cfg["report"] == 0:
            print(f"{step:6d} {total.item() / cfg['report']:.4f}")
            total.zero_()


if __name__ == "__main__":
    train(CFG)
