"""Monte-Carlo price of an Asian basket option in a one-factor model; the geometric call serves as a check."""
import argparse
import math
import os

import torch

small = os.environ.get("TINY") == "1"
parser = argparse.ArgumentParser()
parser.add_argument("--assets", type=int, default=8)
parser.add_argument("--paths", type=int, default=1 << (8 if small else 22))
parser.add_argument("--dates", type=int, default=4 if small else 32)
parser.add_argument("--rounds", type=int, default=3 if small else 1400)
args = parser.parse_args([])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")
RATE, VOL, RHO, STRIKE, MATURITY = 0.02, 0.25, 0.4, 1.0, 1.0


def advance(log_s, running, dt: float):
    own, common = torch.randn_like(log_s), torch.randn_like(running)
    shock = math.sqrt(RHO) * common + math.sqrt(1 - RHO) * own
    log_s = log_s + (RATE - 0.5 * VOL * VOL) * dt + VOL * math.sqrt(dt) * shock
    return log_s, running + log_s.exp().mean(0)


def payoff(log_s, running, dates: int):
    average = running / dates
    geometric = log_s.mean(0).exp()
    return torch.stack(((average - STRIKE).clamp_min(0).mean(), (geometric - STRIKE).clamp_min(0).mean()))


def geometric_exact():
    """Black-Scholes value of the call on the geometric basket."""
    var = VOL * VOL * MATURITY * (RHO + (1 - RHO) / args.assets)
    mean = (RATE - 0.5 * VOL * VOL) * MATURITY
    d1 = (mean + var - math.log(STRIKE)) / math.sqrt(var)
    cdf = lambda v: 0.5 * math.erfc(-v / math.sqrt(2))
    value = math.exp(mean + 0.5 * var) * cdf(d1) - STRIKE * cdf(d1 - math.sqrt(var))
    return value * math.exp(-RATE * MATURITY)


def estimate():
    step = torch.compile(advance) if device.type == "cuda" else advance
    finish = torch.compile(payoff) if device.type == "cuda" else payoff
    zero = torch.zeros(args.assets, args.paths, device=device)
    flat = torch.zeros(args.paths, device=device)
    results = torch.zeros(args.rounds, 2, device=device)
    for r in range(args.rounds):
        log_s, running = zero, flat
        for _ in range(args.dates):
            log_s, running = step(log_s, running, MATURITY / args.dates)
        results[r] = finish(log_s, running, args.dates)
    return results.mean(0) * math.exp(-RATE * MATURITY)


@torch.inference_mode()
def main():
    torch.manual_seed(99)
    arithmetic, geometric = estimate().tolist()
    print(f"asian basket {arithmetic:.5f} terminal geometric {geometric:.5f} (exact {geometric_exact():.5f})")


if __name__ == "__main__":
    main()
