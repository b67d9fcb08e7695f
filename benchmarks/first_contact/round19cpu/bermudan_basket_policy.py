"""Exercise policy of a Bermudan option on a large basket, learned backwards-free by policy gradient on simulated
paths with correlated shocks (a relaxed stopping rule, as in deep optimal stopping)."""
import time

import torch
from torch import nn

ASSETS, DATES, PATHS = 300, 8, 160
RATE, HORIZON, STRIKE = 0.02, 1.0, 1.0


def covariance_of(assets, seed):
    """Covariance of log returns from a factor model, per year."""
    gen = torch.Generator().manual_seed(seed)
    loadings = 0.12 * torch.randn(assets, 12, generator=gen)
    loadings[:, 0] = 0.18
    own = 0.1 + 0.1 * torch.rand(assets, generator=gen)
    return loadings @ loadings.T + torch.diag(own ** 2)


class Market(nn.Module):
    def __init__(self, covariance, dates):
        super().__init__()
        self.dates = dates
        self.dt = HORIZON / dates
        self.register_buffer("covariance", covariance)
        self.register_buffer("drift", (RATE - 0.5 * covariance.diagonal()) * self.dt)

    def mixing(self):
        """A square root of the covariance that small negative eigenvalues of an estimate do not break."""
        values, vectors = torch.linalg.eigh(self.covariance * self.dt)  # flaw: constant-rebuilt
        return vectors * values.clamp(min=0).sqrt()  # flaw: constant-rebuilt

    def forward(self, paths, generator):
        """Prices at each date: (dates, paths, assets)."""
        noise = torch.randn(self.dates, paths, self.covariance.shape[0], generator=generator)
        moves = self.drift + noise @ self.mixing().T  # flaw: constant-rebuilt
        return moves.cumsum(0).exp()


class Stopper(nn.Module):
    """Probability of exercise at each date, from the basket's state."""

    def __init__(self, assets, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(assets + 2, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, prices, payoff, clock):
        state = torch.cat([prices - 1.0, payoff[..., None], clock.expand(*payoff.shape)[..., None]], dim=-1)
        return torch.sigmoid(self.body(state)[..., 0])


def value(market, stopper, weights, clock, discount, generator):
    prices = market(PATHS, generator)
    payoff = (STRIKE - prices @ weights).clamp(min=0)
    stop = stopper(prices, payoff, clock)
    stop = torch.cat([stop[:-1], torch.ones_like(stop[:1])])
    alive = torch.cat([torch.ones_like(stop[:1]), (1 - stop[:-1]).cumprod(0)])
    return (alive * stop * payoff * discount).sum(0).mean()


def main(steps=800):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    market = Market(covariance_of(ASSETS, seed=2), DATES)
    stopper = Stopper(ASSETS)
    weights = torch.full((ASSETS,), 1.0 / ASSETS)
    clock = torch.arange(1, DATES + 1)[:, None] / DATES
    discount = torch.exp(-RATE * HORIZON * clock)
    optimizer = torch.optim.Adam(stopper.parameters(), lr=1e-3, fused=True)
    average, started = torch.zeros(()), time.perf_counter()
    for step in range(1, steps + 1):
        price = value(market, stopper, weights, clock, discount, generator)
        optimizer.zero_grad()
        (-price).backward()
        optimizer.step()
        average.lerp_(price.detach(), 0.05)
        if step % 80 == 0:
            print(f"{step:4d}  value {average / (1 - 0.95 ** step):.5f}  {time.perf_counter() - started:.1f} s",
                  flush=True)


if __name__ == "__main__":
    main()
