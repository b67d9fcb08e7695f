"""Implied volatilities of a stochastic-volatility model by a network, with a penalty on calendar arbitrage."""
import argparse

import torch
from torch import nn
import torch.nn.functional as F

STRIKES, EXPIRIES = 15, 9


def surfaces(count, gen):
    """Parameters (level, slope, curvature, mean reversion, correlation) and smooth total-variance surfaces."""
    theta = torch.rand(count, 5, generator=gen)
    k = torch.linspace(-0.4, 0.4, STRIKES)[None, None]
    t = torch.linspace(0.1, 2.0, EXPIRIES)[None, :, None]
    level, skew, curve, revert, rho = (theta[:, i, None, None] for i in range(5))
    term = (1 - torch.exp(-3 * revert * t)) / (3 * revert * t + 1e-3)
    shifted = k - 0.2 * (rho - 0.5)
    total = t * (0.02 + 0.08 * level) + 0.1 * term * (skew * -k + (0.5 + curve) * (shifted.square() + 0.01).sqrt())
    return theta, total.flatten(1)


class SurfaceNet(nn.Module):
    def __init__(self, width=384, depth=4):
        super().__init__()
        sizes = [5] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.last = nn.Linear(width, EXPIRIES * STRIKES)

    def forward(self, theta):
        x = 2 * theta - 1
        for layer in self.hidden:
            x = F.silu(layer(x))
        return self.last(x)


def arbitrage(total):
    """Total variance must not fall with the expiry."""
    surface = total.unflatten(1, (EXPIRIES, STRIKES))
    return torch.relu(surface[:, :-1] - surface[:, 1:]).mean()


def train(args):
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    theta, total = surfaces(args.count, gen)
    mean, spread = total.mean(), total.std()
    net = SurfaceNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(theta), (args.batch,), generator=gen)
        found = net(theta[rows]) * spread + mean
        loss = F.mse_loss(found, total[rows]) / spread**2 + arbitrage(found)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % args.every == 0:
            print(f"{step:4d}  loss {loss.item():.3e}", flush=True)
    return net, mean, spread


@torch.inference_mode()
def check(net, mean, spread):
    theta, total = surfaces(2000, torch.Generator().manual_seed(99))
    worst = (net(theta) * spread + mean - total).abs().amax()
    print(f"largest error of total variance on new surfaces {worst:.2e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=640)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=80)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=3)
    check(*train(parser.parse_args()))
