"""Next-event model for symbolic music (one GRU, tied scores over a large event vocabulary)."""
import os
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    events: int = 6000
    width: int = 96
    rows: int = 12
    ticks: int = 64
    rounds: int = 110
    lr: float = 2e-3


if os.environ.get("TINY"):
    CFG = Settings(events=200, width=16, rows=2, ticks=16, rounds=6)
else:
    CFG = Settings()


class SequenceNLL(nn.Module):
    """Mean negative log likelihood in nats per event."""

    def forward(self, scores, target):
        return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten())


class MelodyModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.events, cfg.width)
        self.core = nn.GRU(cfg.width, cfg.width, batch_first=True)
        self.out = nn.Linear(cfg.width, cfg.events)

    def forward(self, events):
        hidden, _ = self.core(self.embed(events))
        return self.out(hidden)


def songs(cfg, seed=3):
    g = torch.Generator().manual_seed(seed)
    while True:
        start = torch.randint(cfg.events, (cfg.rows, 1), generator=g)
        jumps = torch.randint(1, 12, (cfg.rows, cfg.ticks), generator=g).cumsum(1)
        piece = torch.cat([start, start + jumps], 1) % cfg.events
        yield piece[:, :-1], piece[:, 1:]


def main():
    torch.manual_seed(0)
    model = MelodyModel(CFG)
    criterion = SequenceNLL()
    opt = torch.optim.AdamW(model.parameters(), lr=CFG.lr, fused=True)
    stream = songs(CFG)
    kept = []
    for number in range(CFG.rounds):
        x, y = next(stream)
        loss = criterion(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if number % 20 == 0 or number == CFG.rounds - 1:
            kept.append(loss.item())
    print("nats per event:", " ".join(f"{v:.4f}" for v in kept))


if __name__ == "__main__":
    main()
