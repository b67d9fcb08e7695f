"""Tags the parts of short search queries (brand, colour, size, ...), many short epochs with early stopping."""
from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Plan:
    vocab: int
    dim: int
    layers: int
    length: int
    batch: int
    per_epoch: int
    epochs: int
    workers: int
    tags: int = 24

    @classmethod
    def from_env(cls) -> "Plan":
        if os.environ.get("SMALL") == "1":
            return cls(64, 16, 1, 16, 4, 10, 3, 1)
        return cls(8192, 512, 3, 64, 256, 10, 9, 8)


class Queries(Dataset):
    def __init__(self, plan: Plan):
        g = torch.Generator().manual_seed(4)
        self.ids = torch.randint(plan.vocab, (plan.batch * plan.per_epoch, plan.length), generator=g)
        self.tags = plan.tags

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: int):
        ids = self.ids[i]
        return ids, ids.remainder(self.tags)


class QueryTagger(nn.Module):
    def __init__(self, plan: Plan):
        super().__init__()
        self.emb = nn.Embedding(plan.vocab, plan.dim)
        self.lstm = nn.LSTM(plan.dim, plan.dim // 2, plan.layers, batch_first=True, bidirectional=True)
        self.out = nn.Linear(plan.dim, plan.tags)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.emb(ids))[0])


class EarlyStop:
    def __init__(self, patience: int):
        self.best, self.left, self.patience = float("inf"), patience, patience

    def __call__(self, value: float) -> bool:
        if value < self.best:
            self.best, self.left = value, self.patience
        else:
            self.left -= 1
        return self.left < 0


def epoch_loss(model, loader, optimizer, device) -> float:
    total = torch.zeros((), device=device)
    for ids, tags in loader:
        ids = ids.to(device, non_blocking=True)
        tags = tags.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
            scores = model(ids)
        loss = F.cross_entropy(scores.float().flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    return total.item() / len(loader)


def main() -> None:
    plan = Plan.from_env()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    loader = DataLoader(  # flaw: loader-workers-restart
        Queries(plan), batch_size=plan.batch, shuffle=True, drop_last=True,  # flaw: loader-workers-restart
        num_workers=plan.workers, pin_memory=device.type == "cuda",  # flaw: loader-workers-restart
    )  # flaw: loader-workers-restart
    model = QueryTagger(plan).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    stop = EarlyStop(patience=5)
    for epoch in range(plan.epochs):
        value = epoch_loss(model, loader, optimizer, device)
        print(f"epoch {epoch}: {value:.4f}")
        if stop(value):
            break


if __name__ == "__main__":
    main()
