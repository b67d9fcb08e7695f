"""Portfolios with a small expected shortfall: a network maps market states to weights, and is trained on resampled
return scenarios by return minus a multiple of the mean of the worst two percent."""
import argparse
import functools

import torch
from torch import nn


def market_states(count, assets, gen):
    """State vectors, and what they say about the mean and the volatility of each asset."""
    states = torch.randn(count, 16, generator=gen)
    mean = 0.0004 + 0.0006 * torch.tanh(states @ torch.randn(16, assets, generator=gen) / 4)
    spread = 0.008 * torch.exp(0.25 * torch.tanh(states @ torch.randn(16, assets, generator=gen) / 4))
    return states, mean, spread


def shock_pool(rows, assets, gen):
    """Standardised returns with one common factor and heavy tails."""
    common = torch.randn(rows, 1, generator=gen)
    own = torch.randn(rows, assets, generator=gen)
    chi = torch.randn(rows, 5, generator=gen).square().mean(1, keepdim=True)
    return (0.5 * common + 0.87 * own) / chi.sqrt()


def allocator(assets, width):
    return nn.Sequential(
        nn.Linear(16, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, assets),
        nn.Softmax(dim=1),
    )


def expected_shortfall(pnl, share):
    """Mean loss of the worst scenarios; pnl is (scenarios, portfolios)."""
    worst = int(share * pnl.shape[0])
    return -torch.topk(pnl, worst, dim=0, largest=False).values.mean(0)


def utility(weights, mean, spread, shocks, aversion, share):
    pnl = shocks @ (weights * spread).T + (weights * mean).sum(1)
    return pnl.mean(0) - aversion * expected_shortfall(pnl, share)


def fit(net, data, pool, objective, steps, batch, scenarios, lr, gen):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr, fused=True)
    states, mean, spread = data
    for step in range(1, steps + 1):
        rows = torch.randint(len(states), (batch,), generator=gen)
        start = int(torch.randint(len(pool) - scenarios, (1,), generator=gen))
        gain = objective(net(states[rows]), mean[rows], spread[rows], pool[start : start + scenarios])
        loss = -gain.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 75 == 0:
            yield step, -loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assets", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--steps", type=int, default=375)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--scenarios", type=int, default=20_000)
    parser.add_argument("--aversion", type=float, default=0.05)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    data = market_states(4000, args.assets, gen)
    pool = shock_pool(6 * args.scenarios, args.assets, gen)
    net = allocator(args.assets, args.width)
    objective = functools.partial(utility, aversion=args.aversion, share=args.share)
    for step, reached in fit(net, data, pool, objective, args.steps, args.batch, args.scenarios, args.lr, gen):
        print(f"step {step:4d}  utility {1e4 * reached:+.3f} bp", flush=True)
    with torch.inference_mode():
        print("largest average weight: %.4f" % net(data[0]).mean(0).max())


if __name__ == "__main__":
    main()
