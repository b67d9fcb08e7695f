"""Scores hail claims (dents, photos' features, weather at the time) as adjusters submit them."""
import collections
import sys
import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class ServerConfig:
    features: int = 384
    hidden: int = 3072
    layers: int = 3
    outcomes: int = 8
    max_claims_per_call: int = 32
    claims: int = 8960
    seed: int = 99
    report_each: int = 1120


Claim = collections.namedtuple("Claim", "number features")


class Scorer(nn.Module):
    def __init__(self, cfg: ServerConfig):
        super().__init__()
        sizes = [cfg.features] + [cfg.hidden] * cfg.layers
        self.body = nn.Sequential()
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            self.body.add_module(f"dense{i}", nn.Linear(a, b))
            self.body.add_module(f"rectify{i}", nn.ReLU())
        self.outcome = nn.Linear(cfg.hidden, cfg.outcomes)

    def forward(self, x):
        return self.outcome(self.body(x)).softmax(dim=1)


class Desk:
    """Claims that wait for a score. Whoever asks gets the oldest ones."""

    def __init__(self, cfg: ServerConfig):
        generator = torch.Generator().manual_seed(cfg.seed)
        table = torch.randn(cfg.claims, cfg.features, generator=generator)
        self.waiting = collections.deque(Claim(100_000 + i, row) for i, row in enumerate(table.unbind(0)))

    def take(self, most):
        taken = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
        return [c.number for c in taken], torch.stack([c.features for c in taken])

    def __bool__(self):
        return bool(self.waiting)


class Ledger:
    def __init__(self, report_each):
        self.report_each = report_each
        self.verdicts = {}
        self.paid = torch.zeros(())
        self.started = time.perf_counter()

    def enter(self, numbers, chances):
        self.paid += chances[:, 0].sum()
        verdicts = chances.argmax(dim=1).tolist()
        self.verdicts.update(zip(numbers, verdicts))
        if len(self.verdicts) % self.report_each == 0:
            self.report()

    def report(self):
        mean = self.paid.item() / len(self.verdicts)
        print(f"{len(self.verdicts):6d} claims, mean chance of payment {mean:.5f}", flush=True)


def serve(cfg: ServerConfig):
    torch.manual_seed(cfg.seed)
    scorer = Scorer(cfg).eval()
    desk, ledger = Desk(cfg), Ledger(cfg.report_each)
    with torch.inference_mode():
        while desk:
            numbers, features = desk.take(cfg.max_claims_per_call)
            ledger.enter(numbers, scorer(features))
    tally = collections.Counter(ledger.verdicts.values())
    print("verdicts:", dict(sorted(tally.items())))
    return 0


if __name__ == "__main__":
    sys.exit(serve(ServerConfig()))
