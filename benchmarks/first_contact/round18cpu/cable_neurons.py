"""A population of Hodgkin-Huxley point neurons under noisy drive; prints spike statistics."""
import dataclasses
import os
import sys
import time

import torch


@dataclasses.dataclass
class Settings:
    cells: int = 1000 if os.getenv("TINY") else 1_000_000
    ticks: int = 5 if os.getenv("TINY") else 110
    dt: float = 0.01


def vtrap(x, y):
    return x / (torch.exp(x / y) - 1.0 + 1e-6)


def derivatives(v, m, h, n, drive):  # flaw: unfused-elementwise
    am, bm = 0.1 * vtrap(-(v + 40.0), 10.0), 4.0 * torch.exp(-(v + 65.0) / 18.0)
    ah, bh = 0.07 * torch.exp(-(v + 65.0) / 20.0), 1.0 / (1.0 + torch.exp(-(v + 35.0) / 10.0))
    an, bn = 0.01 * vtrap(-(v + 55.0), 10.0), 0.125 * torch.exp(-(v + 65.0) / 80.0)
    na = 120.0 * m * m * m * h * (v - 50.0)
    k = 36.0 * n * n * n * n * (v + 77.0)
    leak = 0.3 * (v + 54.387)
    return drive - na - k - leak, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n


class Population:
    def __init__(self, cfg):
        self.cfg = cfg
        self.v = torch.full((cfg.cells,), -65.0) + torch.randn(cfg.cells)
        self.m, self.h, self.n = (torch.full((cfg.cells,), g) for g in (0.053, 0.596, 0.318))
        self.drive = 6.0 + 4.0 * torch.rand(cfg.cells)

    def advance(self):
        rates = derivatives(self.v, self.m, self.h, self.n, self.drive)
        for gate, rate in zip((self.v, self.m, self.h, self.n), rates):
            gate.add_(rate, alpha=self.cfg.dt)


@torch.inference_mode()
def main(cfg):
    torch.manual_seed(8)
    pop = Population(cfg)
    pop.advance()
    start = time.perf_counter()
    for _ in range(cfg.ticks):
        pop.advance()
    print(f"{(time.perf_counter() - start) / cfg.ticks * 1e3:.1f} ms", file=sys.stderr)
    print(f"v {pop.v.mean().item():.3f} +- {pop.v.std().item():.3f}, m {pop.m.mean().item():.4f}")


main(Settings())
