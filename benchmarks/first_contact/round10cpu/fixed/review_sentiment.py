"""Sentiment of product reviews with a small transformer encoder."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


@dataclass(frozen=True)
class Settings:
    vocab: int = 4000
    max_length: int = 160
    width: int = 64
    heads: int = 4
    layers: int = 2
    batch: int = 16
    reviews: int = 1200
    epochs: int = 2


def synthetic_reviews(cfg, seed=11):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(3.2, 0.45, cfg.reviews), 5, cfg.max_length).astype(int)
    reviews = []
    for length in lengths:
        tokens = rng.integers(2, cfg.vocab, length)
        reviews.append((torch.from_numpy(tokens), int(tokens.mean() > cfg.vocab / 2)))
    return reviews


def collate(batch):
    longest = max(len(review) for review, _ in batch)
    tokens = torch.zeros(len(batch), longest, dtype=torch.long)
    for row, (review, _) in zip(tokens, batch):
        row[: len(review)] = review
    labels = torch.tensor([label for _, label in batch])
    return tokens, labels


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        b, n, w = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, w // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(y.transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(self.norm2(x))


class SentimentModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width, padding_idx=0)
        self.positions = nn.Embedding(cfg.max_length, cfg.width)
        self.blocks = nn.ModuleList(Block(cfg.width, cfg.heads) for _ in range(cfg.layers))
        self.head = nn.Linear(cfg.width, 2)

    def forward(self, tokens):
        mask = tokens != 0
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, mask)
        keep = mask.unsqueeze(-1).float()
        return self.head((x * keep).sum(1) / keep.sum(1))


def main():
    cfg = Settings()
    torch.manual_seed(0)
    loader = DataLoader(
        synthetic_reviews(cfg), batch_size=cfg.batch, shuffle=True, collate_fn=collate
    )
    model = SentimentModel(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    for epoch in range(cfg.epochs):
        total = torch.zeros(())
        for tokens, labels in loader:
            loss = F.cross_entropy(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
