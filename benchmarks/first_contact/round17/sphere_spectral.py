"""An ensemble of temperature fields diffuses over latitudes in Legendre space."""
import os
from dataclasses import dataclass

import numpy as np
import torch

torch.set_float32_matmul_precision("high")


@dataclass
class Grid:
    lats: int = 1024
    orders: int = 512
    columns: int = 64 * 1024
    substeps: int = 4
    steps: int = 900
    precision: type = np.float64  # flaw: float64-on-device


class Sphere:
    def __init__(self, grid, device):
        x, w = np.polynomial.legendre.leggauss(grid.lats)
        n = np.arange(grid.orders)
        table = np.polynomial.legendre.legvander(x, grid.orders - 1) * np.sqrt(n + 0.5)
        place = lambda a: torch.from_numpy(np.ascontiguousarray(a, dtype=grid.precision)).to(device)
        self.up = place(table)
        self.down = place((table * w[:, None]).T)
        self.fade = place(np.exp(-1e-5 * n * (n + 1)))[:, None]
        self.sun = place(0.02 * (1 - x**2))[:, None]

    def advance(self, field):
        waves = self.down @ field
        waves *= self.fade
        return torch.addmm(self.sun.expand_as(field), self.up, waves)


@torch.no_grad()
def main():
    grid = Grid()
    if os.environ.get("TINY"):
        grid.lats, grid.orders, grid.columns, grid.steps = 32, 16, 24, 4
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sphere = Sphere(grid, device)
    torch.manual_seed(0)
    field = 15 + torch.randn(grid.lats, grid.columns, device=device).to(sphere.up.dtype)
    for _ in range(grid.steps):
        for _ in range(grid.substeps):
            field = sphere.advance(field)
    print(f"mean {field.mean().item():.2f}")


main()
