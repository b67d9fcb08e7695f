"""Deep hedging of a call option under Black-Scholes."""
import math
import os

import torch
from torch import nn
from torch.distributions import Normal

TINY = os.environ.get("TINY") == "1"


class Market:
    def __init__(self, device, dates, vol=0.2, years=1.0):
        self.device = device
        self.dates = dates
        self.vol = vol
        self.dt = years / dates
        self.shock = Normal(0.0, math.sqrt(self.dt))

    def paths(self, count):
        dw = self.shock.sample((count, self.dates)).to(self.device)  # flaw: tensor-made-on-host
        growth = torch.cumsum(self.vol * dw - 0.5 * self.vol ** 2 * self.dt, dim=1)
        return torch.cat([torch.ones(count, 1, device=self.device), growth.exp()], dim=1)


class Hedger(nn.Module):
    def __init__(self, width, dates):
        super().__init__()
        self.register_buffer("left", torch.linspace(1, 1 / dates, dates))
        self.net = nn.Sequential(nn.Linear(8, width), nn.ReLU(inplace=True),
                                 nn.Linear(width, width), nn.ReLU(inplace=True),
                                 nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, 8))

    def forward(self, spot):
        left = self.left.expand_as(spot)
        zero = torch.zeros_like(spot)
        inputs = torch.stack([spot, spot - 1, left, left * spot, zero, zero, zero, zero], -1)
        return self.net(inputs)[..., 0].float()


def loss_of(hedger, spots, premium):
    with torch.autocast(spots.device.type, dtype=torch.bfloat16):
        held = hedger(spots[:, :-1])
    gains = (held * spots.diff(dim=1)).sum(1)
    payoff = (spots[:, -1] - 1).clamp_min(0)
    return (premium + gains - payoff).square().mean()


def train():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(6)
    dates, count, width, rounds = (8, 64, 16, 6) if TINY else (64, 16384, 256, 600)
    market = Market(device, dates)
    hedger = Hedger(width, dates).to(device)
    premium = nn.Parameter(torch.zeros((), device=device))
    opt = torch.optim.Adam([*hedger.parameters(), premium], lr=1e-3, fused=True)
    for i in range(rounds):
        loss = loss_of(hedger, market.paths(count), premium)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(f"{i}: {loss.item():.5f}")
    print(f"premium {premium.item():.4f}")


if __name__ == "__main__":
    train()
