"""Monte Carlo price and delta of a basket option under stochastic volatility, in reusable buffers."""
import math
from typing import NamedTuple

import torch


class Market(NamedTuple):
    spot: float = 100.0
    strike: float = 102.0
    years: float = 1.0
    rate: float = 0.02
    vol: float = 0.04
    speed: float = 1.5
    vol_of_vol: float = 0.3
    assets: int = 5
    rho: float = 0.4


class Paths:
    """Euler scheme in logs; every buffer is allocated once."""

    def __init__(self, market: Market, count: int, dates: int, seed: int):
        self.m, self.dates = market, dates
        self.dt = market.years / dates
        corr = torch.full((market.assets, market.assets), market.rho).fill_diagonal_(1.0)
        self.mix = torch.linalg.cholesky(corr).t().contiguous()
        self.gen = torch.Generator().manual_seed(seed)
        shape = (count, market.assets)
        self.log, self.normal, self.shock = torch.empty(shape), torch.empty(shape), torch.empty(shape)
        self.var, self.noise, self.sigma = (torch.empty(count, 1) for _ in range(3))

    def restart(self):
        self.log.fill_(math.log(self.m.spot))
        self.var.fill_(self.m.vol)

    def advance(self):
        m, dt = self.m, self.dt
        self.normal.normal_(generator=self.gen)
        self.noise.normal_(generator=self.gen)
        torch.matmul(self.normal, self.mix, out=self.shock)
        torch.sqrt(self.var, out=self.sigma)
        self.log.addcmul_(self.shock, self.sigma, value=math.sqrt(dt))
        self.log.add_(self.var, alpha=-0.5 * dt).add_(m.rate * dt)
        self.noise.mul_(self.sigma).mul_(m.vol_of_vol * math.sqrt(dt))
        self.var.mul_(1 - m.speed * dt).add_(m.speed * m.vol * dt).add_(self.noise).clamp_(min=1e-6)

    def terminal(self):
        self.restart()
        for _ in range(self.dates):
            self.advance()
        return torch.exp(self.log)


@torch.inference_mode()
def price(market: Market, rounds: int, count: int, dates: int):
    paths = Paths(market, count, dates, seed=91)
    discount = math.exp(-market.rate * market.years)
    value, delta = torch.zeros(()), torch.zeros(())
    for _ in range(rounds):
        final = paths.terminal()
        basket = final.mean(1)
        paid = (basket - market.strike).clamp_(min=0)
        value += paid.mean()
        delta += ((basket > market.strike) * basket).mean() / market.spot
    return discount * float(value) / rounds, discount * float(delta) / rounds


if __name__ == "__main__":
    result = price(Market(), rounds=70, count=16_384, dates=40)
    print("price %.3f delta %.3f" % result)
