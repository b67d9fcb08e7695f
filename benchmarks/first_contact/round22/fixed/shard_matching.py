"""Match pottery shards: learn an embedding in which two worn profiles of one vessel are neighbours.

The profiles stay in host memory (the full excavation archive would not fit the GPU); the second view of each
vessel is worn down on the host, as the archive's own tool does it.
"""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

TINY = os.environ.get("TINY") == "1"
CUDA = torch.cuda.is_available()
torch.set_float32_matmul_precision("high")


@dataclass(frozen=True)
class Plan:
    vessels: int = 500 if TINY else 200_000
    points: int = 64 if TINY else 512
    knots: int = 8 if TINY else 32
    batch: int = 32 if TINY else 8192
    hidden: int = 64 if TINY else 8192
    code: int = 32 if TINY else 1024
    updates: int = 40 if TINY else 2000
    report: int = 10 if TINY else 100
    temperature: float = 0.07


def blank(*shape: int) -> Tensor:
    return torch.empty(*shape, pin_memory=CUDA)


class Lift:
    """Carries host tensors to where the model lives."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)


class Archive:
    def __init__(self, plan: Plan, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.profiles = torch.randn(plan.vessels, plan.points, generator=generator)
        self.plan = plan
        self.rng = np.random.default_rng(seed)

    def pick(self) -> Tensor:
        chosen = torch.from_numpy(self.rng.integers(0, self.plan.vessels, self.plan.batch))
        return torch.index_select(self.profiles, 0, chosen, out=blank(self.plan.batch, self.plan.points))

    def worn(self, rows: Tensor) -> Tensor:
        """The same vessels after a thousand years: each stretch of the rim lost some material."""
        plan = self.plan
        loss = self.rng.standard_normal((plan.batch, plan.knots), dtype=np.float32)
        np.abs(loss, out=loss)
        loss *= 0.4
        out = blank(plan.batch, plan.points)
        stretch = (plan.batch, plan.knots, plan.points // plan.knots)
        np.subtract(rows.numpy().reshape(stretch), loss[:, :, None], out=out.numpy().reshape(stretch))
        return out


def pairs(archive: Archive, lift: Lift) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        rows = archive.pick()
        fresh = lift(rows)
        yield fresh, lift(archive.worn(rows))


class Encoder(nn.Sequential):
    def __init__(self, points: int, hidden: int, code: int) -> None:
        super().__init__(
            nn.Linear(points, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, code)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(super().forward(x), dim=-1)


def main(plan: Plan = Plan()) -> None:
    device = "cuda" if CUDA else "cpu"
    torch.manual_seed(2)
    encoder = Encoder(plan.points, plan.hidden, plan.code).to(device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-4, fused=True)
    own = torch.arange(plan.batch, device=device)
    running = torch.zeros((), device=device)
    stream = pairs(Archive(plan, seed=19), Lift(device))
    for update in range(1, plan.updates + 1):
        fresh, worn = next(stream)
        with torch.autocast(device, dtype=torch.bfloat16):
            left, right = encoder(torch.cat((fresh, worn))).chunk(2)
            loss = F.cross_entropy(left @ right.t() / plan.temperature, own)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if update % plan.report == 0:
            print(f"{update:>5} InfoNCE {running.item() / plan.report:.4f}", flush=True)
            running.zero_()


if __name__ == "__main__":
    main()
