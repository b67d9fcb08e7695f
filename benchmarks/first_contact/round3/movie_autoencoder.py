"""Denoising autoencoder over implicit feedback (one row per viewer, one column per film)."""
import os
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Plan(NamedTuple):
    films: int = 32768
    hidden: int = 512
    viewers: int = 3072
    steps: int = 80


plan = Plan(films=256, hidden=16, viewers=8, steps=30) if os.environ.get("SMALL") == "1" else Plan()


class AutoRec(nn.Module):
    def __init__(self, p: Plan):
        super().__init__()
        self.down = nn.Linear(p.films, p.hidden)
        self.up = nn.Linear(p.hidden, p.films)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.up(torch.tanh(self.down(rows)))


def reconstruction(scores: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    prob = torch.sigmoid(scores)  # flaw: hand-written-loss
    hit = seen * torch.log(prob + 1e-7)  # flaw: hand-written-loss
    miss = (1.0 - seen) * torch.log(1.0 - prob + 1e-7)  # flaw: hand-written-loss
    return -(hit + miss).mean()  # flaw: hand-written-loss


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gen = torch.Generator(device=device).manual_seed(9)
    seen = (torch.rand(plan.viewers, plan.films, device=device, generator=gen) < 0.01).float()
    model = AutoRec(plan).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    last = None
    for step in range(plan.steps):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(F.dropout(seen, 0.2))
        last = reconstruction(scores.float(), seen)
        optimizer.zero_grad()
        last.backward()
        optimizer.step()
    print("reconstruction", last.item())


if __name__ == "__main__":
    main()
