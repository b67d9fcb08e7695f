"""Next click of a shop's visitor: a causal network reads the session so far and ranks all articles."""
import os
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

TINY = "TINY" in os.environ


@dataclass
class Shop:
    articles: int = 150 if TINY else 30_000
    clicks: int = 12 if TINY else 64
    width: int = 32 if TINY else 384
    depth: int = 2 if TINY else 6
    heads: int = 4 if TINY else 6
    batch: int = 4 if TINY else 256
    steps: int = 4 if TINY else 900
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")


class Reader(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.collect = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.project(self.first(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.collect(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class SessionRanker(nn.Module):
    def __init__(self, shop):
        super().__init__()
        self.article = nn.Embedding(shop.articles, shop.width)
        nn.init.normal_(self.article.weight, std=0.02)
        self.position = nn.Parameter(torch.zeros(shop.clicks, shop.width))
        self.readers = nn.Sequential(*[Reader(shop.width, shop.heads) for _ in range(shop.depth)])
        self.norm = nn.LayerNorm(shop.width)

    def rank(self, states):
        return F.linear(self.norm(states), self.article.weight)

    def forward(self, session, length):
        states = self.readers(self.article(session) + self.position)
        rows = torch.arange(len(session), device=session.device)
        return self.rank(states[rows, length - 1])


def sessions(shop):
    for _ in range(shop.steps):
        clicks = torch.randint(shop.articles, (shop.batch, shop.clicks + 1), device=shop.device)
        length = torch.randint(shop.clicks // 4, shop.clicks + 1, (shop.batch,), device=shop.device)
        yield clicks[:, :-1], length, clicks.gather(1, length[:, None]).squeeze(1)


def train(shop):
    torch.manual_seed(9)
    ranker = SessionRanker(shop).to(shop.device)
    optimizer = torch.optim.AdamW(ranker.parameters(), lr=1e-3, fused=True)
    for number, (session, length, bought) in enumerate(sessions(shop)):
        with torch.autocast(shop.device, dtype=torch.bfloat16):
            loss = F.cross_entropy(ranker(session, length), bought)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if number % 80 == 0:
            print(f"{number}\t{loss.item():.4f}", flush=True)
    print(f"end\t{loss.item():.4f}")


if __name__ == "__main__":
    train(Shop())
