# Prices a strip of calls under Heston's model by Monte Carlo (full truncation scheme).
import argparse
import math
import os

import torch

small = bool(os.environ.get("TINY"))
cli = argparse.ArgumentParser()
cli.add_argument("--paths", type=int, default=4096 if small else 1 << 25)
cli.add_argument("--rounds", type=int, default=3 if small else 400)
cli.add_argument("--increments", type=int, default=16)
args = cli.parse_args()

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
KAPPA, THETA, XI, RHO, RATE = 1.5, 0.04, 0.3, -0.7, 0.02
DT = 1.0 / args.increments


@torch.compile
def increment(log_s, var, z_var, z_ind):
    v = torch.clamp(var, min=0.0)
    root = torch.sqrt(v * DT)
    z_s = RHO * z_var + math.sqrt(1 - RHO**2) * z_ind
    log_s = log_s + (RATE - 0.5 * v) * DT + root * z_s
    milstein = 0.25 * XI**2 * DT * (z_var * z_var - 1)
    var = var + KAPPA * (THETA - v) * DT + XI * root * z_var + milstein
    return log_s, var


class Strip:
    """Running sums of the payoffs for several strikes."""

    def __init__(self, strikes):
        self.strikes = strikes
        self.sums = [torch.zeros((), device=device, dtype=torch.float64) for _ in strikes]
        self.rounds = 0

    def add(self, spot):
        for total, strike in zip(self.sums, self.strikes):
            total += (spot - strike).clamp_(min=0).mean()
        self.rounds += 1

    def prices(self):
        return [math.exp(-RATE) * float(s) / self.rounds for s in self.sums]


@torch.inference_mode()
def main():
    torch.manual_seed(11)
    strip = Strip([0.9, 1.0, 1.1])
    z_var = torch.empty(args.paths, device=device)
    z_ind = torch.empty(args.paths, device=device)
    left = args.rounds
    while left:
        log_s = torch.zeros(args.paths, device=device)
        var = torch.full((args.paths,), THETA, device=device)
        for _ in range(args.increments):
            z_var.normal_()
            z_ind.normal_()
            log_s, var = increment(log_s, var, z_var, z_ind)
        strip.add(log_s.exp_())
        left -= 1
    for strike, price in zip(strip.strikes, strip.prices()):
        print(f"K={strike:.2f}  call={price:.4f}")


if __name__ == "__main__":
    main()
