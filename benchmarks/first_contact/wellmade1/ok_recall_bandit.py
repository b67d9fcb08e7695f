import argparse
import collections
import time

import torch
from torch import nn


def parse():
    p = argparse.ArgumentParser(description="Linear Thompson/UCB re-ranking of recalled items, one visitor at a time")
    p.add_argument("--catalogue", type=int, default=60_000)
    p.add_argument("--recalled", type=int, default=1024)
    p.add_argument("--width", type=int, default=384)
    p.add_argument("--visitors", type=int, default=1600)
    p.add_argument("--alpha", type=float, default=0.6)
    p.add_argument("--ridge", type=float, default=2.0)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


class CrossTower(nn.Module):
    """Features of (visitor, item); trained offline, delivered as it is."""

    def __init__(self, item_dim, visitor_dim, width):
        super().__init__()
        self.item = nn.Linear(item_dim, width)
        self.visitor = nn.Linear(visitor_dim, width)
        self.mix = nn.Linear(width, width)

    def forward(self, item_half, visitor):
        hidden = torch.relu_(item_half + self.visitor(visitor))
        return torch.relu_(self.mix(hidden))


class Ridge:
    """Posterior of a linear reward; the inverse is kept by rank-one updates."""

    def __init__(self, width, ridge):
        self.inverse = torch.eye(width) / ridge
        self.moment = torch.zeros(width)
        self.theta = torch.zeros(width)

    def upper(self, features, alpha):
        spread = torch.linalg.vecdot(features @ self.inverse, features)
        return torch.addmv(alpha * spread.clamp_(min=0).sqrt_(), features, self.theta)

    def learn(self, x, reward):
        ax = self.inverse @ x
        self.inverse.addr_(ax, ax, alpha=-1.0 / (1.0 + float(x @ ax)))
        self.moment.add_(x, alpha=reward)
        self.theta = self.inverse @ self.moment


class Visitors:
    """Stand-in for the site: tastes drift with what was shown last."""

    def __init__(self, catalogue, dim, seed):
        self.rng = torch.Generator().manual_seed(seed)
        self.catalogue = catalogue
        self.taste = torch.randn(dim, generator=self.rng)
        self.secret = torch.randn(catalogue.shape[1], dim, generator=self.rng) / dim**0.5

    def arrive(self, recalled):
        self.taste.mul_(0.9).add_(torch.randn(self.taste.shape, generator=self.rng), alpha=0.45)
        ids = torch.randint(0, len(self.catalogue), (recalled,), generator=self.rng)
        return self.taste, ids

    def click(self, item):
        liking = float(self.catalogue[item] @ (self.secret @ self.taste)) / 8
        coin = float(torch.rand((), generator=self.rng))
        if liking > 0:
            self.taste.add_(self.secret.T @ self.catalogue[item], alpha=-0.02)
        return 1.0 if coin < 1 / (1 + 2.718281828 ** (-liking)) else 0.0


@torch.inference_mode()
def serve(args):
    torch.manual_seed(args.seed)
    catalogue = torch.randn(args.catalogue, 192)
    site = Visitors(catalogue, 64, args.seed + 1)
    tower = CrossTower(192, 64, args.width).requires_grad_(False).eval()
    halves = tower.item(catalogue)
    posterior = Ridge(args.width, args.ridge)
    recent = collections.deque(maxlen=200)
    started = time.perf_counter()
    for n in range(1, args.visitors + 1):
        taste, ids = site.arrive(args.recalled)
        features = tower(halves[ids], taste)
        bounds = posterior.upper(features, args.alpha)
        best = int(bounds.argmax())
        reward = site.click(ids[best])
        posterior.learn(features[best], reward - 0.5)
        recent.append(reward)
        if n % 200 == 0:
            pace = 1000 * (time.perf_counter() - started) / n
            rate = sum(recent) / len(recent)
            print(f"visitor {n:5d}  click rate {rate:.3f}  |theta| {float(posterior.theta.norm()):.3f}  {pace:.1f} ms each")


if __name__ == "__main__":
    serve(parse())
