"""How far the first losses move under bf16 autocast, and how far with another seed. On the CPU, in a minute.

    python benchmarks/losses.py

`warpline.measure.losses` takes its tolerance from between the two. Networks are trained from the start
on made-up data; shown is the mean of the first losses against the plain run's, as measurements compare it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import fmean, median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STEPS = (5, 10, 20)
SEEDS = range(5)


def regression() -> tuple[nn.Module, float, Callable[[nn.Module], Tensor]]:
    """A perceptron that learns a sum."""
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1))

    def loss(model: nn.Module) -> Tensor:
        x = torch.randn(64, 256)
        return F.mse_loss(model(x).float(), x.sum(1, keepdim=True) / 16)

    return model, 1e-3, loss


def convolutions() -> tuple[nn.Module, float, Callable[[nn.Module], Tensor]]:
    """Convolutions with batch norms, ten classes."""
    layers = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    layers += [nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))

    def loss(model: nn.Module) -> Tensor:
        return F.cross_entropy(model(torch.randn(32, 3, 24, 24)), torch.randint(0, 10, (32,)))

    return model, 1e-3, loss


def encoder(rate: float) -> tuple[nn.Module, float, Callable[[nn.Module], Tensor]]:
    """Two layers of a transformer that classify a sequence."""
    layers = (nn.TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True) for _ in range(2))
    model = nn.Sequential(nn.Embedding(2000, 128), *layers, nn.Flatten(), nn.Linear(128 * 32, 2))

    def loss(model: nn.Module) -> Tensor:
        tokens = torch.randint(0, 2000, (16, 32))
        return F.cross_entropy(model(tokens), tokens[:, 0] % 2)

    return model, rate, loss


NETWORKS = {
    "perceptron": regression,
    "convolutions": convolutions,
    "transformer": lambda: encoder(1e-4),
    "transformer, learning fast": lambda: encoder(1e-3),
}


def main() -> int:
    torch.set_num_threads(1)
    print("| network | " + " | ".join(f"bf16, {n} steps" for n in STEPS), end=" | ")
    print(" | ".join(f"other seed, {n} steps" for n in STEPS) + " |")
    print("|---" * (1 + 2 * len(STEPS)) + "|", flush=True)
    for name, make in NETWORKS.items():
        plain = [losses(make, seed, half=False) for seed in SEEDS]
        half = [losses(make, seed, half=True) for seed in SEEDS]
        cells = [max(drift(a, b, n) for a, b in zip(plain, half, strict=True)) for n in STEPS]
        cells += [median(drift(a, b, n) for a, b in combinations(plain, 2)) for n in STEPS]
        print(f"| {name} | " + " | ".join(f"{cell:.1g}" for cell in cells) + " |", flush=True)
    print("\nbf16: the largest of five seeds; other seed: the median of ten pairs")
    return 0


def losses(
    make: Callable[[], tuple[nn.Module, float, Callable[[nn.Module], Tensor]]], seed: int, half: bool
) -> list[float]:
    """The first losses of one run."""
    torch.manual_seed(seed)
    model, rate, loss_of = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    found = []
    for _ in range(max(STEPS)):
        with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
            loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def drift(plain: Sequence[float], changed: Sequence[float], steps: int) -> float:
    return abs(fmean(changed[:steps]) - fmean(plain[:steps])) / fmean(map(abs, plain[:steps]))


if __name__ == "__main__":
    sys.exit(main())
