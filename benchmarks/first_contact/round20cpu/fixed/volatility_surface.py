"""Residual MLP that learns an implied-volatility surface (strike, maturity, regime -> sigma)."""
import contextlib
import dataclasses
import logging
import math

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s | %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("volsurf")


@dataclasses.dataclass
class Config:
    rows: int = 40_000
    regimes: int = 6
    width: int = 64
    depth: int = 10
    batch: int = 384
    iters: int = 700
    lr: float = 2e-3
    log_every: int = 100
    seed: int = 11


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


class ResidualUnit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.act = nn.SiLU()
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class VolNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Linear(2 + cfg.regimes, cfg.width)
        self.units = nn.Sequential(*[ResidualUnit(cfg.width) for _ in range(cfg.depth)])
        self.head = nn.Sequential(nn.LayerNorm(cfg.width), nn.Linear(cfg.width, 1), nn.Softplus())

    def forward(self, x):
        return self.head(self.units(self.stem(x))).squeeze(1)


def synthetic_quotes(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    moneyness = torch.randn(cfg.rows, generator=g) * 0.25
    maturity = torch.rand(cfg.rows, generator=g) * 2 + 0.05
    regime = torch.randint(cfg.regimes, (cfg.rows,), generator=g)
    skew = -0.1 - 0.03 * regime
    total = 0.04 * maturity + skew * moneyness * maturity.sqrt() * 0.2 + 0.3 * moneyness**2
    sigma = total.clamp_min(1e-3).div(maturity).sqrt().clamp_max(2.0)
    onehot = nn.functional.one_hot(regime, cfg.regimes).float()
    features = torch.cat([moneyness[:, None], maturity.log()[:, None], onehot], dim=1)
    return features, sigma


class Trainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        self.x, self.y = synthetic_quotes(cfg)
        self.model = VolNet(cfg)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=1e-4, fused=True)
        self.sched = torch.optim.lr_scheduler.LambdaLR(
            self.opt, lambda it: 0.5 * (1 + math.cos(math.pi * it / cfg.iters))
        )
        self.meter = AverageMeter()
        self.scope = contextlib.ExitStack()

    def __enter__(self):
        self.scope.callback(log.info, "run closed")
        return self

    def __exit__(self, *exc):
        return self.scope.__exit__(*exc)

    def train_iter(self, rows):
        loss = nn.functional.smooth_l1_loss(self.model(self.x[rows]), self.y[rows], beta=0.05)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.sched.step()
        return loss.item()

    def fit(self):
        for it in range(1, self.cfg.iters + 1):
            rows = torch.randint(self.cfg.rows, (self.cfg.batch,))
            self.meter.update(self.train_iter(rows), self.cfg.batch)
            if it % self.cfg.log_every == 0:
                log.info("iter %4d  loss %.5f  lr %.2e", it, self.meter.avg, self.sched.get_last_lr()[0])
                self.meter.reset()


if __name__ == "__main__":
    with Trainer(Config()) as trainer:
        trainer.fit()
