"""Prices down-and-out calls under Heston dynamics; the whole path is one compiled function."""
import math
import os

import torch

TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PATHS, DAYS, ROUNDS = (512, 4, 4) if TINY else (1 << 27, 8, 900)


@torch.compile(backend="inductor" if device.type == "cuda" else "eager")
def worth(spot, strike, wall, dt):
    log_price = spot.log().expand(PATHS)
    variance = torch.full_like(log_price, 0.04)
    alive = torch.ones_like(log_price)
    for _ in range(DAYS):
        one, two = torch.randn_like(log_price), torch.randn_like(log_price)
        sigma = variance.clamp(min=0).sqrt()
        log_price = log_price + (0.02 - 0.5 * sigma * sigma) * dt + sigma * math.sqrt(dt) * one
        shock = -0.7 * one + math.sqrt(1 - 0.49) * two
        variance = variance + 1.5 * (0.04 - sigma * sigma) * dt + 0.3 * sigma * math.sqrt(dt) * shock
        alive = torch.where(log_price > wall, alive, 0.0)
    return ((log_price.exp() - strike).relu() * alive).mean() * math.exp(-0.02 * dt * DAYS)


@torch.inference_mode()
def main():
    torch.manual_seed(77)
    spot = torch.tensor(100.0, device=device)
    total = torch.zeros((), device=device)
    for _ in range(ROUNDS):
        total += worth(spot, 105.0, math.log(80.0), 0.0625)
    print(f"price {total.item() / ROUNDS:.4f}")


main()
