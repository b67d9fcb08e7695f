# Deep hedging of a call option under Heston dynamics: a shared policy network trades along simulated paths.
import argparse
import math
import os
from functools import partial

import torch
from torch import nn

TINY = bool(int(os.environ.get("TINY", "0")))


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--paths", type=int, default=256 if TINY else 131072)
    p.add_argument("--dates", type=int, default=8 if TINY else 32)
    p.add_argument("--hidden", type=int, default=32 if TINY else 128)
    p.add_argument("--iterations", type=int, default=10 if TINY else 220)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--strike", type=float, default=1.0)
    p.add_argument("--cost", type=float, default=1e-3)
    return p.parse_args([])


class Heston:
    kappa, theta, sigma, rho, v0 = 1.5, 0.04, 0.4, -0.7, 0.04

    def __init__(self, dates, maturity=0.25):
        self.dates = dates
        self.dt = maturity / dates

    def shocks(self, paths, like):
        return torch.empty(2, self.dates, paths).normal_().to(like.device)  # flaw: tensor-made-on-host

    def step(self, log_s, var, z0, z1):
        root = var.clamp_min(0).mul(self.dt).sqrt()
        w = self.rho * z0 + math.sqrt(1 - self.rho ** 2) * z1
        new_var = var + self.kappa * (self.theta - var.clamp_min(0)) * self.dt + self.sigma * root * w
        return log_s - 0.5 * var.clamp_min(0) * self.dt + root * z0, new_var

    def evolve(self, z):
        log_s = torch.zeros_like(z[0, 0])
        var = torch.full_like(log_s, self.v0)
        spots, variances = [log_s], [var]
        for t in range(self.dates):
            log_s, var = self.step(log_s, var, z[0, t], z[1, t])
            spots.append(log_s)
            variances.append(var)
        return torch.stack(spots), torch.stack(variances)


class Policy(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(8, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
            nn.Linear(hidden, 8),
        )

    def forward(self, features):
        return torch.sigmoid(self.body(features)[..., 0].float())


def features(log_s, var, strike):
    t = torch.linspace(0, 1, log_s.shape[0] - 1, device=log_s.device)[:, None].expand(-1, log_s.shape[1])
    s, v = log_s[:-1], var[:-1]
    m = s - math.log(strike)
    return torch.stack((s, v, t, m, m * t, v * t, s * v, torch.ones_like(s)), dim=-1)


def objective(policy, log_s, var, strike, cost):
    delta = policy(features(log_s, var, strike))
    spot = log_s.exp()
    gains = (delta * (spot[1:] - spot[:-1])).sum(0)
    turnover = (delta[1:] - delta[:-1]).abs().mul(spot[1:-1]).sum(0) + delta[0].abs()
    payoff = (spot[-1] - strike).clamp_min(0)
    pnl = gains - cost * turnover - payoff
    return pnl.var() + 0.1 * (-pnl.mean())


def run():
    args = options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    torch.manual_seed(11)
    torch.set_float32_matmul_precision("high")
    market = Heston(args.dates)
    policy = Policy(args.hidden).to(device)
    optimiser = torch.optim.Adam(policy.parameters(), lr=args.lr, fused=gpu)
    risk_fn = objective
    if not TINY:
        market.step, risk_fn = torch.compile(market.step), torch.compile(objective)
    loss_of = partial(risk_fn, policy, strike=args.strike, cost=args.cost)
    anchor = next(policy.parameters())
    total = torch.zeros((), device=device)
    for it in range(args.iterations):
        with torch.no_grad():
            log_s, var = market.evolve(market.shocks(args.paths, anchor))
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            risk = loss_of(log_s=log_s, var=var)
        optimiser.zero_grad(set_to_none=True)
        risk.backward()
        optimiser.step()
        total += risk.detach()
    print(f"mean risk {total.item() / args.iterations:.6f}")


if __name__ == "__main__":
    run()
