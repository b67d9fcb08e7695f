"""Deep hedging of a basket call: a policy network trades eight assets, CVaR of the final loss is minimised."""
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn, optim


class Market(NamedTuple):
    assets: int = 8
    dates: int = 32
    maturity: float = 0.5
    sigma: float = 0.3
    rho: float = 0.4
    strike: float = 1.0
    cost: float = 1e-3


def correlation_factor(m: Market) -> torch.Tensor:
    corr = torch.full((m.assets, m.assets), m.rho)
    corr.fill_diagonal_(1.0)
    return torch.linalg.cholesky(corr)


def simulate(m: Market, noise: torch.Tensor, chol: torch.Tensor) -> torch.Tensor:
    """Correlated geometric Brownian motion: (paths, dates + 1, assets)."""
    dt = m.maturity / m.dates
    shocks = noise @ (chol.T * (m.sigma * math.sqrt(dt))) - 0.5 * m.sigma**2 * dt
    return F.pad(shocks.cumsum(1), (0, 0, 1, 0)).exp()


class Policy(nn.Module):
    def __init__(self, m: Market, hidden: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * m.assets, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, m.assets),
        )

    def forward(self, spot, clock):
        features = torch.cat([spot.log(), clock.expand(spot.shape[0], -1, -1)], dim=-1)
        return self.net(features)


def hedging_loss(m: Market, spot, position, level):
    gains = (position * spot.diff(dim=1)).sum((1, 2))
    turnover = (F.pad(position.diff(dim=1), (0, 0, 1, 0)).abs() * spot[:, :-1]).sum((1, 2))
    payoff = (spot[:, -1].mean(-1) - m.strike).clamp_min(0)
    loss = payoff - gains + m.cost * turnover
    return level + (loss - level).clamp_min(0).mean() / 0.1


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    paths, hidden, iterations = (16384, 512, 220) if cuda else (128, 16, 5)
    torch.manual_seed(7)
    torch.set_float32_matmul_precision("high")

    market = Market()
    chol = correlation_factor(market).to(device)
    policy = Policy(market, hidden).to(device)
    level = nn.Parameter(torch.zeros((), device=device))
    opt = optim.Adam([*policy.parameters(), level], lr=1e-3, fused=cuda)
    left = torch.linspace(1, 0, market.dates + 1, device=device)[:-1].view(1, -1, 1)
    clock = torch.cos(left * torch.arange(market.assets, device=device))

    for it in range(1, iterations + 1):
        noise = torch.randn(paths, market.dates, market.assets).to(device)  # flaw: tensor-made-on-host
        spot = simulate(market, noise, chol)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            position = policy(spot[:, :-1], clock)
        loss = hedging_loss(market, spot, position.float(), level)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 50 == 0 or it == iterations:
            print(f"iter {it:4d}  cvar {loss.item():.5f}  var level {level.item():.5f}")


if __name__ == "__main__":
    main()
