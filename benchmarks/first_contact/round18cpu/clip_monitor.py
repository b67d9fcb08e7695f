"""Contrastive pretraining of captions against sound clips, with a monitor of how spread out the embeddings are."""
import os
import sys
import time
import resource

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
PAIRS = 64 if TINY else 512
STEPS = 8 if TINY else 110


def tower(inputs, hidden=64 if TINY else 640, out=64):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, out))


class SpreadMonitor:
    """Exponential average of the Gaussian potential of the embeddings (lower is more uniform)."""

    def __init__(self, keep=0.95):
        self.keep = keep
        self.level = None

    def observe(self, z):
        potential = torch.cdist(z, z).square().mul(-2).exp().mean().log()
        if self.level is None:
            self.level = potential  # flaw: graph-kept-alive
        else:
            self.level = torch.lerp(potential, self.level, self.keep)  # flaw: graph-kept-alive

    def report(self):
        return self.level.item()


class Trainer:
    def __init__(self):
        self.sound, self.text = tower(256), tower(128)
        self.scale = nn.Parameter(torch.tensor(2.0))
        weights = [*self.sound.parameters(), *self.text.parameters(), self.scale]
        self.optimizer = torch.optim.AdamW(weights, lr=5e-4, fused=True)
        self.monitor = SpreadMonitor()
        self.diagonal = torch.arange(PAIRS)

    def step(self, clips, captions):
        a = F.normalize(self.sound(clips), dim=-1)
        b = F.normalize(self.text(captions), dim=-1)
        scores = self.scale.exp() * a @ b.T
        loss = (F.cross_entropy(scores, self.diagonal) + F.cross_entropy(scores.T, self.diagonal)) / 2
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.monitor.observe(a)
        return loss


torch.manual_seed(4)
shared = torch.randn(6, PAIRS, 32)
clips = shared @ torch.randn(32, 256) / 5
captions = shared @ torch.randn(32, 128) / 5
trainer = Trainer()
t0 = time.perf_counter()
for n in range(STEPS):
    loss = trainer.step(clips[n % 6], captions[n % 6])
    if n % 20 == 19 or n == STEPS - 1:
        print(f"{n + 1}: loss {loss.item():.3f} spread {trainer.monitor.report():.3f}")
print(f"{(time.perf_counter() - t0) / STEPS * 1e3:.1f} ms a step, "
      f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB", file=sys.stderr)
