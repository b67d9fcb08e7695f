"""Price barrier calls under a stochastic-volatility model, quarter by quarter."""
import math
import os
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Market:
    spot: float = 100.0
    rate: float = 0.02
    var0: float = 0.04
    revert: float = 1.7
    level: float = 0.05
    volvol: float = 0.4
    rho: float = -0.65
    barrier: float = 160.0


class Desk:
    def __init__(self, market, paths, days, device):
        self.m, self.paths, self.days, self.device = market, paths, days, device
        self.gen = torch.Generator(device).manual_seed(5)

    @torch.compile(disable=bool(os.environ.get("TINY")))
    def evolve(self, log_s, var, alive, z1, z2, dt: float):
        m = self.m
        plus = var.clamp(min=0.0)
        vol = plus.sqrt()
        w = m.rho * z1 + math.sqrt(1 - m.rho**2) * z2
        drift = (m.rate - 0.5 * plus) * dt
        shock = vol * z1 * math.sqrt(dt)
        milstein = 0.25 * m.volvol**2 * dt * (w * w - 1.0)
        var = var + m.revert * (m.level - plus) * dt + m.volvol * vol * w * math.sqrt(dt) + milstein
        new = log_s + drift + shock
        mid = torch.maximum(log_s, new) + 0.5826 * vol * math.sqrt(dt)
        alive = alive * torch.sigmoid(200.0 * (math.log(m.barrier) - mid))
        return new, var, alive

    def draw(self):
        return torch.randn(2, self.paths, device=self.device, generator=self.gen)

    def quarter(self, strike):
        dt = 0.25 / self.days
        log_s = torch.full((self.paths,), math.log(self.m.spot), device=self.device)
        var = torch.full_like(log_s, self.m.var0)
        alive = torch.ones_like(log_s)
        for _ in range(self.days):
            z1, z2 = self.draw()
            log_s, var, alive = self.evolve(log_s, var, alive, z1, z2, dt)
        pay = (log_s.exp() - strike).clamp_(min=0.0).mul_(alive)
        return pay.mean() * math.exp(-0.25 * self.m.rate)


@torch.inference_mode()
def main():
    tiny = bool(os.environ.get("TINY"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    desk = Desk(Market(), 2000 if tiny else 1 << 24, 4 if tiny else 16, device)
    strikes = [80 + 0.25 * k for k in range(3 if tiny else 400)]
    prices = torch.stack([desk.quarter(k) for k in strikes])
    print("first", round(prices[0].item(), 2), "last", round(prices[-1].item(), 2))


main()
