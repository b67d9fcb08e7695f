"""Outlier scores for machine telemetry: mean distance to the nearest reference windows."""
import os
from functools import partial
from typing import Iterator

import torch

TINY = os.environ.get("TINY", "") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
BANK, DIM, CHUNK, CHUNKS, NEAREST = (512, 16, 32, 3, 4) if TINY else (131072, 256, 2048, 128, 16)


def windows(count: int, dim: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    g = torch.Generator(device=DEV).manual_seed(seed)
    base = torch.randn(count, dim, device=DEV, generator=g)
    return base * torch.linspace(0.5, 1.5, dim, device=DEV) + shift


def stream(chunks: int, make) -> Iterator[torch.Tensor]:
    for n in range(chunks):
        yield make(seed=100 + n, shift=0.05 * (n % 5))


def squared_distances(bank, bank_sq, queries):
    """|q|^2 is left out: it does not change the order; it is added after the selection."""
    return torch.addmm(bank_sq, queries, bank.t(), alpha=-2.0)


def closest(table: torch.Tensor, how_many: int) -> torch.Tensor:
    return torch.topk(table, how_many, dim=-1, largest=False).values


def score(bank, bank_sq, queries, how_many):
    near = closest(squared_distances(bank, bank_sq, queries), how_many)
    own = queries.square().sum(1, keepdim=True)
    return (near + own).clamp_(min=0).sqrt_().mean(1)


@torch.inference_mode()
def run() -> torch.Tensor:
    torch.set_float32_matmul_precision("high")
    bank = windows(BANK, DIM, seed=1)
    grade = partial(score, bank, bank.square().sum(1), how_many=NEAREST)
    scores = torch.empty(CHUNKS, CHUNK, device=DEV)
    for row, queries in zip(scores, stream(CHUNKS, partial(windows, CHUNK, DIM))):
        row.copy_(grade(queries))
    return scores


def report(scores: torch.Tensor) -> str:
    """One line for the night log; everything is read back at once."""
    cut = scores.mean() + 2 * scores.std()
    per_shift = torch.stack([scores[n::5].mean() for n in range(min(5, CHUNKS))])
    numbers = torch.cat([scores.mean()[None], (scores > cut).sum()[None].to(scores.dtype), per_shift])
    mean, outliers, *shifts = numbers.tolist()
    drift = " ".join(f"{s:.4f}" for s in shifts)
    return f"mean {mean:.4f}  outliers {outliers:.0f}  by shift {drift}"


if __name__ == "__main__":
    print(report(run()))
