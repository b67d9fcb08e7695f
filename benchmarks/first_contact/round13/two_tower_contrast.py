"""Two towers for session-to-item retrieval with in-batch negatives."""
from __future__ import annotations

import os
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Plan:
    batch: int = 16384
    feats: int = 512
    hidden: int = 2048
    out: int = 1024
    rounds: int = 450
    pool: int = 131072
    temperature: float = 0.05
    tf32: bool = False  # flaw: fp32-matmul


plan = Plan()
if os.environ.get("TINY") == "1":
    plan = replace(plan, batch=64, feats=32, hidden=64, out=32, rounds=4, pool=512)
where = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cuda.matmul.allow_tf32 = plan.tf32  # flaw: fp32-matmul


def tower(p: Plan) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(p.feats, p.hidden), nn.GELU(),
        nn.Linear(p.hidden, p.hidden), nn.GELU(),
        nn.Linear(p.hidden, p.hidden), nn.GELU(),
        nn.Linear(p.hidden, p.out), nn.LayerNorm(p.out),
    )


class InBatchSoftmax(nn.Module):
    """Cross entropy over all items of the batch; kept out of autocast, the temperature is small."""

    def __init__(self, temperature: float, batch: int):
        super().__init__()
        self.inv = 1.0 / temperature
        self.register_buffer("diagonal", torch.arange(batch), persistent=False)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        with torch.autocast(where, enabled=False):  # flaw: fp32-matmul
            left = F.normalize(left.float(), dim=1) * self.inv
            right = F.normalize(right.float(), dim=1)
            return F.cross_entropy(F.linear(left, right), self.diagonal)  # flaw: fp32-matmul


class Session2Item:
    def __init__(self, p: Plan):
        torch.manual_seed(7)
        self.p = p
        self.left, self.right = tower(p).to(where), tower(p).to(where)
        if os.environ.get("TINY") != "1":
            self.left.compile()
            self.right.compile()
        self.criterion = InBatchSoftmax(p.temperature, p.batch).to(where)
        weights = [*self.left.parameters(), *self.right.parameters()]
        self.opt = torch.optim.AdamW(weights, lr=3e-4, fused=True)
        gen = torch.Generator(device=where).manual_seed(1)
        self.sessions = torch.randn(p.pool, p.feats, device=where, generator=gen)
        self.items = self.sessions.roll(1, 1) + 0.5 * torch.randn(p.pool, p.feats, device=where, generator=gen)
        self.gen = gen

    def batches(self):
        for _ in range(self.p.rounds):
            pick = torch.randint(self.p.pool, (self.p.batch,), device=where, generator=self.gen)
            yield self.sessions[pick], self.items[pick]

    def fit(self) -> float:
        recent = torch.zeros((), device=where)
        for a, b in self.batches():
            self.opt.zero_grad(set_to_none=True)
            with torch.autocast(where, dtype=torch.bfloat16, enabled=where == "cuda"):
                loss = self.criterion(self.left(a), self.right(b))
            loss.backward()
            self.opt.step()
            recent.lerp_(loss.detach(), 0.1)
        return recent.item()


if __name__ == "__main__":
    print(f"smoothed loss {Session2Item(plan).fit():.4f}")
