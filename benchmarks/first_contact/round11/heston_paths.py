"""Price a basket of barrier options by Monte Carlo under the Heston model."""
from collections import namedtuple

import torch

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
PATHS = 16_777_216 if CUDA else 4096
SUBSTEPS = 6 if CUDA else 2  # time steps between two monitoring dates
DATES = 120 if CUDA else 4

Heston = namedtuple("Heston", "rate kappa theta xi rho")
MARKET = Heston(rate=0.02, kappa=1.8, theta=0.05, xi=0.45, rho=-0.7)
SPOT, START_VARIANCE, MATURITY = 100.0, 0.04, 1.0


def advance(log_price, variance, z1, z2, dt, model):  # flaw: unfused-elementwise
    """One full-truncation Euler step with a martingale correction; z1, z2 are independent normals."""
    positive = torch.clamp(variance, min=0.0)
    volatility = torch.sqrt(positive * dt)
    shock = model.rho * z1 + (1.0 - model.rho ** 2) ** 0.5 * z2
    drift = (model.rate - 0.5 * positive) * dt
    log_price = log_price + drift + volatility * z1
    variance = variance + model.kappa * (model.theta - positive) * dt + model.xi * volatility * shock
    return log_price, variance


class Basket:
    """Up-and-out calls with several strikes and a common barrier, monitored on all dates."""

    def __init__(self, strikes, barrier):
        self.strikes, self.log_barrier = strikes, torch.tensor(barrier, device=DEVICE).log()

    def survive(self, alive, log_price):
        return alive.logical_and_(log_price < self.log_barrier)

    def payoff(self, alive, log_price):
        price = log_price.exp()
        return torch.stack([((price - k).clamp_(min=0) * alive).mean() for k in self.strikes])


class Simulator:
    def __init__(self, paths, model, seed):
        self.model = model
        self.gen = torch.Generator(DEVICE).manual_seed(seed)
        self.log_price = torch.full((paths,), SPOT, device=DEVICE).log_()
        self.variance = torch.full((paths,), START_VARIANCE, device=DEVICE)
        self.z1, self.z2 = torch.empty(paths, device=DEVICE), torch.empty(paths, device=DEVICE)

    def to_next_date(self, dt):
        """Antithetic normals: the second half of the paths sees the first half's with the other sign."""
        half = len(self.z1) // 2
        for _ in range(SUBSTEPS):
            for z in (self.z1, self.z2):
                z[:half].normal_(generator=self.gen)
                torch.neg(z[:half], out=z[half:])
            self.log_price, self.variance = advance(
                self.log_price, self.variance, self.z1, self.z2, dt, self.model)
        return self.log_price


@torch.inference_mode()
def price(basket, paths=PATHS, dates=DATES, seed=0):
    simulator = Simulator(paths, MARKET, seed)
    alive = torch.ones(paths, dtype=torch.bool, device=DEVICE)
    dt = MATURITY / (dates * SUBSTEPS)
    for _ in range(dates):
        alive = basket.survive(alive, simulator.to_next_date(dt))
    discount = torch.exp(torch.tensor(-MARKET.rate * MATURITY))
    values = basket.payoff(alive, simulator.log_price).cpu() * discount
    return values, alive.float().mean().item(), simulator.variance.mean().item()


def main():
    strikes = [80.0, 90.0, 100.0, 110.0]
    values, survival, variance = price(Basket(strikes, barrier=150.0))
    for strike, value in zip(strikes, values.tolist()):
        print(f"strike {strike:6.1f}  price {value:8.3f}")
    print(f"survival {survival:.4f}  mean variance {variance:.5f}")


if __name__ == "__main__":
    main()
