"""Price a book of European options under Heston by Monte Carlo (full truncation Euler)."""
import dataclasses
import math
import os

import torch

tiny = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclasses.dataclass
class Market:
    spot: float = 100.0
    rate: float = 0.02
    v0: float = 0.04
    kappa: float = 1.5
    theta: float = 0.05
    xi: float = 0.6
    rho: float = -0.7


@dataclasses.dataclass
class Book:
    strikes: tuple = (80.0, 90.0, 100.0, 110.0, 120.0)
    maturity: float = 1.0
    dates: int = 8 if tiny else 48
    paths: int = 1024 if tiny else 16_777_216
    repeats: int = 2 if tiny else 300


@torch.compile(disable=tiny)
def euler(log_s, v, z1, z2, m, dt):
    vp = v.clamp(min=0.0)
    vol = (vp * dt).sqrt()
    zv = m.rho * z1 + math.sqrt(1 - m.rho ** 2) * z2
    log_s = log_s + (m.rate - 0.5 * vp) * dt + vol * z1
    v = v + m.kappa * (m.theta - vp) * dt + m.xi * vol * zv
    return log_s, v


def terminal(market, book, gen):
    log_s = torch.full((book.paths,), math.log(market.spot), device=device)
    v = torch.full((book.paths,), market.v0, device=device)
    z1, z2 = torch.empty_like(log_s), torch.empty_like(log_s)
    for _ in range(book.dates):
        z1.normal_(generator=gen)
        z2.normal_(generator=gen)
        log_s, v = euler(log_s, v, z1, z2, market, book.maturity / book.dates)
    return log_s.exp_()


def price(market, book, seed=1):
    gen = torch.Generator(device=device).manual_seed(seed)
    value = torch.zeros(len(book.strikes), device=device)
    for _ in range(book.repeats):
        s = terminal(market, book, gen)
        for j, strike in enumerate(book.strikes):
            value[j] += torch.relu_(s - strike).mean()
    return value.mul_(math.exp(-market.rate * book.maturity) / book.repeats)


if __name__ == "__main__":
    with torch.inference_mode():
        for strike, p in zip(Book.strikes, price(Market(), Book()).tolist()):
            print(f"K={strike:6.1f}  call {p:.3f}")
