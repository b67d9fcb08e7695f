"""Masked modelling of fault-code logs of trams. Pretraining only."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class ModelArgs:
    codes: int = 2_000
    window: int = 48
    dim: int = 80
    heads: int = 4
    layers: int = 2


@dataclass
class TrainArgs:
    model: ModelArgs = field(default_factory=ModelArgs)
    windows: int = 32
    masked: int = 6
    updates: int = 320
    lr: float = 1e-3
    every: int = 40


MASK = 0


class FaultEncoder(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.tok = nn.Embedding(a.codes, a.dim)
        self.pos = nn.Parameter(torch.randn(a.window, a.dim) * 0.02)
        layer = nn.TransformerEncoderLayer(a.dim, a.heads, 2 * a.dim, dropout=0.0, batch_first=True, norm_first=True)
        self.trunk = nn.TransformerEncoder(layer, a.layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(a.dim)
        self.to_codes = nn.Linear(a.dim, a.codes)

    def forward(self, codes, where):
        """Scores of the codes at the positions `where` (windows, masked)."""
        states = self.norm(self.trunk(self.tok(codes) + self.pos))
        wanted = states.gather(1, where.unsqueeze(-1).expand(-1, -1, states.size(-1)))
        return self.to_codes(wanted)


class FaultLog:
    """A Markov-like log: each code mostly triggers one of its own follow-ups."""

    def __init__(self, a, length=60_000, seed=4):
        self.a = a
        self.gen = torch.Generator().manual_seed(seed)
        follow = torch.randint(1, a.codes, (a.codes,), generator=self.gen).tolist()
        fresh = torch.randint(1, a.codes, (length,), generator=self.gen).tolist()
        chance = torch.rand(length, generator=self.gen).tolist()
        log = [1]
        for new, c in zip(fresh, chance):
            log.append(follow[log[-1]] if c < 0.7 else 1 + new % 200)
        self.log = torch.tensor(log)

    def windows(self, n):
        start = torch.randint(len(self.log) - self.a.window, (n, 1), generator=self.gen)
        return self.log[start + torch.arange(self.a.window)]


class MaskCollator:
    def __init__(self, masked, gen):
        self.masked, self.gen = masked, gen

    def __call__(self, codes):
        where = torch.rand(codes.shape, generator=self.gen).topk(self.masked, dim=1).indices
        labels = codes.gather(1, where)
        return codes.scatter(1, where, MASK), where, labels


def batches(log, collate, n, updates):
    for _ in range(updates):
        yield collate(log.windows(n))


def pretrain(args):
    torch.manual_seed(0)
    log = FaultLog(args.model)
    model = FaultEncoder(args.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr * 3, total_steps=args.updates)
    collate = MaskCollator(args.masked, log.gen)
    for update, (codes, where, labels) in enumerate(batches(log, collate, args.windows, args.updates), 1):
        scores = model(codes, where)
        loss = F.cross_entropy(scores.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if update % args.every == 0:
            print({"update": update, "nll": round(loss.item(), 4), "lr": f"{scheduler.get_last_lr()[0]:.1e}"})


if __name__ == "__main__":
    pretrain(TrainArgs())
