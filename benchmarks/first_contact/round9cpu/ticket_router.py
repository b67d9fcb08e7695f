"""Routes support tickets to teams with a two-layer transformer encoder."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


@dataclass
class Config:
    vocab: int = 4000
    teams: int = 10
    max_len: int = 160
    dim: int = 64
    heads: int = 4
    layers: int = 2
    batch_size: int = 24
    tickets: int = 1800
    epochs: int = 2
    lr: float = 1e-3


cfg = Config()


def make_tickets():
    rng = np.random.default_rng(7)
    length = np.clip(rng.lognormal(3.5, 0.12, cfg.tickets), 4, cfg.max_len).astype(int)
    team = rng.integers(0, cfg.teams, cfg.tickets)
    tickets = []
    for n, k in zip(length, team):
        words = rng.integers(1, cfg.vocab, n)
        words[: n // 3] = 1 + k * 20 + rng.integers(0, 20, n // 3)
        tickets.append((torch.from_numpy(words), int(k)))
    return tickets


def collate(batch):
    tokens = torch.zeros(len(batch), cfg.max_len, dtype=torch.long)  # flaw: padded-batches
    for row, (words, _) in enumerate(batch):
        tokens[row, : len(words)] = words
    return tokens, torch.tensor([team for _, team in batch])


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=0)
        self.places = nn.Embedding(cfg.max_len, cfg.dim)
        layer = nn.TransformerEncoderLayer(cfg.dim, cfg.heads, 2 * cfg.dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.out = nn.Linear(cfg.dim, cfg.teams)

    def forward(self, tokens):
        pad = tokens == 0
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        x = self.encoder(x, src_key_padding_mask=pad)
        x = x.masked_fill(pad[..., None], 0).sum(1) / (~pad).sum(1, keepdim=True)
        return self.out(x)


def run():
    torch.manual_seed(0)
    loader = DataLoader(
        make_tickets(),
        batch_size=cfg.batch_size,
        shuffle=True,
        collate_fn=collate,
        generator=torch.Generator().manual_seed(0),
    )
    model = Router()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    for epoch in range(cfg.epochs):
        hits = 0
        for tokens, team in loader:
            logits = model(tokens)
            loss = F.cross_entropy(logits, team)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += int((logits.detach().argmax(1) == team).sum())
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hits / cfg.tickets:.3f}")


if __name__ == "__main__":
    run()
