"""Two-tower candidate model with in-batch softmax on synthetic click logs."""
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

SMALL = os.environ.get("SMALL") == "1"


@dataclass
class Config:
    users: int = 2_000 if SMALL else 3_000_000
    items: int = 1_000 if SMALL else 1_000_000
    dim: int = 16 if SMALL else 64
    hidden: int = 32 if SMALL else 512
    batch: int = 64 if SMALL else 8192
    steps: int = 30 if SMALL else 150
    temperature: float = 0.05
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


def mlp(inp, hidden, out, device):
    return nn.Sequential(
        nn.Linear(inp, hidden, device=device), nn.GELU(),
        nn.Linear(hidden, hidden, device=device), nn.GELU(),
        nn.Linear(hidden, out, device=device),
    )


class TwoTower(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.user_id = nn.Embedding(cfg.users, cfg.dim, device=cfg.device)  # flaw: dense-embedding-gradient
        self.item_id = nn.Embedding(cfg.items, cfg.dim, device=cfg.device)  # flaw: dense-embedding-gradient
        self.user_tower = mlp(cfg.dim, cfg.hidden, 128, cfg.device)
        self.item_tower = mlp(cfg.dim, cfg.hidden, 128, cfg.device)
        self.temperature = cfg.temperature

    def forward(self, users, items):
        u = F.normalize(self.user_tower(self.user_id(users)), dim=-1)
        v = F.normalize(self.item_tower(self.item_id(items)), dim=-1)
        return u @ v.t() / self.temperature

    def split(self):
        tables = [self.user_id.weight, self.item_id.weight]
        towers = [*self.user_tower.parameters(), *self.item_tower.parameters()]
        return tables, towers


class ClickLog:
    """All interactions live on the device; a batch is one slice of a permutation."""

    def __init__(self, cfg):
        n = cfg.batch * cfg.steps
        self.users = torch.randint(cfg.users, (n,), device=cfg.device)
        self.items = torch.randint(cfg.items, (n,), device=cfg.device)
        self.batch = cfg.batch

    def __iter__(self):
        for u, i in zip(self.users.split(self.batch), self.items.split(self.batch)):
            yield u, i


def main():
    cfg = Config()
    torch.manual_seed(0)
    model = TwoTower(cfg)
    tables, towers = model.split()
    table_opt = torch.optim.Adagrad(tables, lr=0.05)
    tower_opt = torch.optim.AdamW(towers, lr=1e-3, fused=True)
    target = torch.arange(cfg.batch, device=cfg.device)
    for step, (users, items) in enumerate(ClickLog(cfg)):
        with torch.autocast(cfg.device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(users, items), target)
        loss.backward()
        table_opt.step()
        tower_opt.step()
        table_opt.zero_grad()
        tower_opt.zero_grad()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
