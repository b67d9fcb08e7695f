from __future__ import annotations

import time
from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SETTINGS: dict[str, dict] = {
    "small": {"noise": 32, "width": 256, "particles": 768, "slices": 64, "lr": 6e-4},
    "wide": {"noise": 64, "width": 512, "particles": 2048, "slices": 128, "lr": 3e-4},
}
OBSERVABLES = 40


def make_detector(seed: int) -> Callable[[int], Tensor]:
    """Draws events: a mixture of decays, smeared by a non-linear response."""
    rng = torch.Generator().manual_seed(seed)
    modes = torch.randn(6, OBSERVABLES, generator=rng) * 1.5
    response = torch.randn(OBSERVABLES, OBSERVABLES, generator=rng) / OBSERVABLES**0.5
    pool_mode = torch.randint(0, len(modes), (60_000,), generator=rng)
    pool = modes[pool_mode] + 0.4 * torch.randn(60_000, OBSERVABLES, generator=rng)
    pool = pool + 0.5 * torch.sin(pool @ response)
    pool = (pool - pool.mean(0)) / pool.std(0)

    def draw(count: int) -> Tensor:
        return pool[torch.randint(0, len(pool), (count,), generator=rng)]

    return draw


def directions(count: int, dim: int) -> Tensor:
    return F.normalize(torch.randn(count, dim), dim=1)


def sliced_wasserstein(made: Tensor, real: Tensor, slices: Tensor) -> Tensor:
    """Squared 2-Wasserstein distance, averaged over one-dimensional projections."""
    ours = (slices @ made.T).sort(dim=1).values
    with torch.no_grad():
        theirs = (slices @ real.T).sort(dim=1).values
    return F.mse_loss(ours, theirs)


class Generator(nn.Module):
    def __init__(self, noise: int, width: int) -> None:
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(
            nn.Linear(noise, width), nn.LeakyReLU(0.1, inplace=True),
            nn.Linear(width, width), nn.LeakyReLU(0.1, inplace=True),
            nn.Linear(width, width), nn.LeakyReLU(0.1, inplace=True),
            nn.Linear(width, OBSERVABLES),
        )

    def forward(self, count: int) -> Tensor:
        return self.net(torch.randn(count, self.noise))


def evaluate(generator: Generator, draw: Callable[[int], Tensor], rounds: int = 4) -> float:
    distances = []
    with torch.inference_mode():
        for _ in range(rounds):
            slices = directions(64, OBSERVABLES)
            distances.append(sliced_wasserstein(generator(2048), draw(2048), slices))
    return float(torch.stack(distances).mean().sqrt())


def fit(name: str, steps: int, report: int) -> Generator:
    s = SETTINGS[name]
    draw = make_detector(seed=4)
    generator = Generator(s["noise"], s["width"])
    optimizer = torch.optim.Adam(generator.parameters(), lr=s["lr"], betas=(0.5, 0.99), fused=True)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    running = torch.zeros(())
    began = time.perf_counter()
    for step in range(1, steps + 1):
        slices = directions(s["slices"], OBSERVABLES)
        loss = sliced_wasserstein(generator(s["particles"]), draw(s["particles"]), slices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
        running += loss.detach()
        if step % report == 0:
            pace = 1000 * (time.perf_counter() - began) / step
            print(f"[{name}] {step}/{steps}  train {float(running) / report:.4f}  "
                  f"held out {evaluate(generator, draw):.4f}  {pace:.1f} ms per step")
            running.zero_()
    return generator


if __name__ == "__main__":
    torch.manual_seed(1)
    fit("small", steps=1500, report=150)
