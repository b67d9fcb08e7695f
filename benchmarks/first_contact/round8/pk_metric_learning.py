"""Metric-learning head on frozen image descriptors, P x K batches, normalised softmax over classes."""
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = True
CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


@dataclass
class Config:
    classes: int = 20000 if CUDA else 60
    per_class: int = 10 if CUDA else 8
    in_dim: int = 2048 if CUDA else 32
    hidden: int = 4096 if CUDA else 48
    out_dim: int = 512 if CUDA else 16
    p: int = 1024 if CUDA else 8
    k: int = 8 if CUDA else 4
    steps: int = 400 if CUDA else 12
    lr: float = 3e-4
    scale: float = 24.0
    log_every: int = 50 if CUDA else 4


class PKSampler:
    """Draws P classes and K members of each; keeps hard classes slightly more likely."""

    def __init__(self, labels, p, k, seed=0):
        self.p, self.k = p, k
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(labels.max() + 2))
        self.members = [order[a:b] for a, b in zip(bounds[:-1], bounds[1:])]
        self.rng = np.random.default_rng(seed)

    def draw(self):
        classes = self.rng.choice(len(self.members), self.p, replace=False)
        rows = np.empty((self.p, self.k), dtype=np.int64)
        for i, c in enumerate(classes):
            pool = self.members[c]
            rows[i] = pool[self.rng.integers(0, len(pool), self.k)]
        idx = torch.from_numpy(rows.reshape(-1))
        lab = torch.from_numpy(np.repeat(classes, self.k))
        return (idx.pin_memory(), lab.pin_memory()) if CUDA else (idx, lab)


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total = self.total + value * n
        self.count += n

    @property
    def avg(self):
        return float(self.total) / max(self.count, 1)


class EmbeddingHead(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.net = nn.Sequential(
            nn.Linear(cfg.in_dim, cfg.hidden),
            nn.GELU(),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.GELU(),
            nn.Linear(cfg.hidden, cfg.out_dim),
        )
        self.prototypes = nn.Parameter(torch.randn(cfg.classes, cfg.out_dim) * 0.02)

    def forward(self, x):
        z = F.normalize(self.net(x), dim=-1)
        w = F.normalize(self.prototypes, dim=-1)
        return self.cfg.scale * F.linear(z, w)


def main():
    cfg = Config()
    torch.manual_seed(0)
    labels = np.repeat(np.arange(cfg.classes), cfg.per_class)
    centres = torch.randn(cfg.classes, cfg.in_dim, device=DEVICE)
    feats = centres.repeat_interleave(cfg.per_class, 0)
    feats = (feats + 0.7 * torch.randn_like(feats)).to(torch.bfloat16)
    del centres

    sampler = PKSampler(labels, cfg.p, cfg.k)
    model = EmbeddingHead(cfg).to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=CUDA)
    meter = AverageMeter()
    start = time.time()
    for step in range(1, cfg.steps + 1):
        idx, lab = sampler.draw()
        idx = idx.to(DEVICE, non_blocking=True)
        lab = lab.to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(feats[idx]), lab)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        meter.update(loss.item(), cfg.p * cfg.k)  # flaw: sync-in-step
        if step % cfg.log_every == 0:
            print(f"step {step:4d}  loss {meter.avg:.4f}  {time.time() - start:.1f}s")
            meter.reset()


if __name__ == "__main__":
    main()
