"""Click-through model on a wide table of categorical features."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = bool(os.environ.get("SMALL"))


@dataclass(frozen=True)
class Transfer:
    pinned: bool = True
    overlap: bool = True


@dataclass(frozen=True)
class Config:
    fields: int = 6 if SMALL else 48
    rows: int = 1000 if SMALL else 20000
    dim: int = 8 if SMALL else 32
    hidden: int = 64 if SMALL else 6144
    batch: int = 64 if SMALL else 8192
    steps: int = 30 if SMALL else 220
    workers: int = 1 if SMALL else 8
    transfer: Transfer = Transfer()


class Clicks(Dataset):
    """Every item is a ready batch: one tensor per feature, as the feature store hands them out."""

    def __init__(self, cfg):
        self.cfg = cfg

    def __len__(self):
        return self.cfg.steps

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        ids = torch.randint(self.cfg.rows, (self.cfg.fields, self.cfg.batch), generator=g)
        out = {f"cat_{k}": ids[k].clone() for k in range(self.cfg.fields)}
        out["label"] = (ids[0] % 3 == 0).float()
        return out


class Wide(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tables = nn.ModuleDict(
            {f"cat_{k}": nn.Embedding(cfg.rows, cfg.dim) for k in range(cfg.fields)}
        )
        self.mlp = nn.Sequential(
            nn.Linear(cfg.fields * cfg.dim, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, 1),
        )

    def forward(self, feats):
        cols = [table(feats[name]) for name, table in self.tables.items()]
        return self.mlp(torch.cat(cols, dim=1)).squeeze(1)


class Feeder:
    def __init__(self, loader, device, policy):
        self.loader, self.device, self.policy = loader, device, policy

    def __iter__(self):
        for batch in self.loader:
            yield {k: self.place(v) for k, v in batch.items()}

    def place(self, t):
        return t.to(self.device, non_blocking=self.policy.overlap)


def main():
    cfg = Config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Wide(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loader = DataLoader(
        Clicks(cfg), batch_size=None, num_workers=cfg.workers,
        pin_memory=cfg.transfer.pinned and device.type == "cuda", prefetch_factor=2,
    )
    for step, feats in enumerate(Feeder(loader, device, cfg.transfer)):
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(feats)
        loss = F.binary_cross_entropy_with_logits(logits.float(), feats["label"])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
