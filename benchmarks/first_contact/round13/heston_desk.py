"""Overnight revaluation of a book of barrier calls under Heston, by simulation."""
import contextlib
import math
import os
from collections import namedtuple

import torch

Heston = namedtuple("Heston", "kappa theta xi rho rate")
Book = namedtuple("Book", "spot strike barrier expiry")

tiny = os.environ.get("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PATHS = 4096 if tiny else 1 << 24
SLICES = 8 if tiny else 24
SCENARIOS = 3 if tiny else 320
model = Heston(kappa=1.8, theta=0.05, xi=0.4, rho=-0.6, rate=0.03)
book = Book(spot=100.0, strike=105.0, barrier=140.0, expiry=1.0)


def euler(log_s, var, alive, z1, z2, m: Heston, dt: float, log_barrier: float):  # flaw: unfused-elementwise
    """One full-truncation step; also advances the smoothed survival weight."""
    root = math.sqrt(dt)
    v_pos = torch.clamp(var, min=0.0)  # flaw: unfused-elementwise
    vol = v_pos.sqrt() * root  # flaw: unfused-elementwise
    mixed = m.rho * z1 + math.sqrt(1 - m.rho ** 2) * z2  # flaw: unfused-elementwise
    log_s = log_s + (m.rate - 0.5 * v_pos) * dt + vol * z1  # flaw: unfused-elementwise
    var = var + m.kappa * (m.theta - v_pos) * dt + m.xi * vol * mixed  # flaw: unfused-elementwise
    alive = alive * torch.sigmoid((log_barrier - log_s) * 50.0)  # flaw: unfused-elementwise
    return log_s, var, alive


class Desk:
    def __init__(self, seed: int):
        self.gen = torch.Generator(device=dev).manual_seed(seed)
        self.z1 = torch.empty(PATHS, device=dev)
        self.z2 = torch.empty(PATHS, device=dev)

    def noise(self):
        self.z1.normal_(generator=self.gen)
        self.z2.normal_(generator=self.gen)
        return self.z1, self.z2

    def revalue(self, bump: float) -> torch.Tensor:
        dt = book.expiry / SLICES
        log_s = torch.full((PATHS,), math.log(book.spot * (1 + bump)), device=dev)
        var = torch.full((PATHS,), model.theta, device=dev)
        alive = torch.ones(PATHS, device=dev)
        for _ in range(SLICES):
            log_s, var, alive = euler(log_s, var, alive, *self.noise(), model, dt, math.log(book.barrier))
        gain = torch.relu(log_s.exp_() - book.strike)
        return torch.dot(gain, alive) * (math.exp(-model.rate * book.expiry) / PATHS)


@contextlib.contextmanager
def ledger(size):
    values = torch.zeros(size, device=dev)
    yield values
    table = values.tolist()
    print(f"low {min(table):.3f} high {max(table):.3f} mean {sum(table) / len(table):.3f}")


with torch.no_grad(), ledger(SCENARIOS) as values:
    desk = Desk(seed=2024)
    for i in range(SCENARIOS):
        values[i] = desk.revalue(bump=0.1 * (2 * i / SCENARIOS - 1))
