"""Route support tickets to one of nine desks with a small transformer encoder.

Tickets are grouped into batches of about equal length before collation, so that a batch holds either
short notes or long complaints.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch
from torch import nn

PAD = 0


@dataclass
class RouterConfig:
    vocab: int = 3000
    desks: int = 9
    longest: int = 112
    dim: int = 128
    heads: int = 4
    layers: int = 2
    batch: int = 12
    steps: int = 320
    lr: float = 5e-4
    keywords: int = 20
    seed: int = 5
    label_names: list[str] = field(default_factory=lambda: [f"desk-{i}" for i in range(9)])


def make_tickets(cfg: RouterConfig, n: int) -> list[tuple[list[int], int]]:
    """Ticket lengths follow a long-tailed law: most are a few lines, some are essays."""
    rng = random.Random(cfg.seed)
    tickets = []
    for _ in range(n):
        desk = rng.randrange(cfg.desks)
        length = min(cfg.longest, max(12, int(rng.lognormvariate(3.4, 0.5))))
        low = 1 + desk * cfg.keywords
        words = [
            rng.randrange(low, low + cfg.keywords) if rng.random() < 0.15 else rng.randrange(200, cfg.vocab)
            for _ in range(length)
        ]
        tickets.append((words, desk))
    return tickets


def length_groups(tickets, batch: int, seed: int):
    order = sorted(range(len(tickets)), key=lambda i: len(tickets[i][0]))
    groups = [order[i : i + batch] for i in range(0, len(order) - batch + 1, batch)]
    random.Random(seed).shuffle(groups)
    return groups


class Collator:
    def __init__(self, cfg: RouterConfig):
        self.cfg = cfg

    def __call__(self, items):
        width = max(len(words) for words, _ in items)
        tokens = torch.tensor([words + [PAD] * (width - len(words)) for words, _ in items])
        desks = torch.tensor([desk for _, desk in items])
        return tokens, desks


class TicketEncoder(nn.Module):
    def __init__(self, cfg: RouterConfig):
        super().__init__()
        self.words = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=PAD)
        self.places = nn.Parameter(0.02 * torch.randn(cfg.longest, cfg.dim))
        layer = nn.TransformerEncoderLayer(
            cfg.dim, cfg.heads, 2 * cfg.dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, cfg.layers, enable_nested_tensor=False)
        self.desk = nn.Linear(cfg.dim, cfg.desks)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        blank = tokens == PAD
        h = self.words(tokens) + self.places[: tokens.shape[1]]
        h = self.body(h, src_key_padding_mask=blank)
        keep = (~blank).unsqueeze(-1)
        return self.desk((h * keep).sum(1) / keep.sum(1))


def train(cfg: RouterConfig) -> None:
    torch.manual_seed(cfg.seed)
    tickets = make_tickets(cfg, 3200)
    groups = length_groups(tickets, cfg.batch, cfg.seed)
    collate = Collator(cfg)
    model = TicketEncoder(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    right = seen = 0
    for step in range(cfg.steps):
        tokens, desks = collate([tickets[i] for i in groups[step % len(groups)]])
        scores = model(tokens)
        loss = nn.functional.cross_entropy(scores, desks)
        opt.zero_grad()
        loss.backward()
        opt.step()
        right += (scores.argmax(1) == desks).sum().item()
        seen += len(desks)
        if (step + 1) % 80 == 0:
            print(f"{step + 1:4d} steps  loss {loss.item():.4f}  accuracy {right / seen:.3f}")
            right = seen = 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(RouterConfig())
