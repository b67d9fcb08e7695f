"""Prices forwards on saffron with a mean-reverting price and a stochastic harvest, by simulated paths."""
import os
from typing import NamedTuple

import torch

TINY = os.environ.get("TINY") == "1"
PATHS = 2_000 if TINY else 2_000_000
DAYS = 5 if TINY else 130


class Market(NamedTuple):
    pull: float = 2.5
    level: float = 7.2
    vol_pull: float = 1.8
    vol_level: float = 0.09
    vol_of_vol: float = 0.35
    rho: float = -0.4
    dt: float = 1 / 252


@torch.compile
def advance(log_price, variance, shock, other, m: Market):
    positive = variance.clamp(min=0.0)
    spread = (positive * m.dt).sqrt()
    season = 0.15 * torch.sin(log_price * 0.8) + 0.02 * torch.cos(3.0 * log_price)
    crossed = m.rho * shock + (1 - m.rho**2) ** 0.5 * other
    price = log_price + m.pull * (m.level + season - log_price - 0.5 * positive) * m.dt + spread * shock
    drift = m.vol_pull * (m.vol_level - positive) * m.dt
    smile = 0.25 * m.vol_of_vol**2 * m.dt * (crossed * crossed - 1.0)
    return price, variance + drift + m.vol_of_vol * spread * crossed + smile


@torch.inference_mode()
def simulate(market):
    torch.manual_seed(5)
    bank = torch.randn(4, PATHS)
    price = torch.full((PATHS,), 7.0)
    variance = torch.full((PATHS,), 0.08)
    for day in range(DAYS):
        price, variance = advance(price, variance, bank[day % 4], bank[(day + 1) % 4], market)
        if day % 30 == 0:
            print(f"day {day:3d} forward {price.mean().item():.3f}")
    return price


final = simulate(Market())
print(f"strike 7.1: {(final - 7.1).clamp_(min=0).mean().item():.4f}")
