"""Phoneme recognition with a CTC objective on synthetic filter banks."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Debugging:
    log_every: int = 25
    trace_backward: bool = False


@dataclass
class Options:
    mels: int = 80
    dim: int = 512
    depth: int = 8
    frames: int = 800
    phones: int = 64
    labels: int = 60
    batch: int = 32
    steps: int = 80
    debug: Debugging = None

    def __post_init__(self):
        self.debug = self.debug or Debugging()


class GatedMix(nn.Module):
    """Depthwise mixing over time in the channels-last layout, followed by a gated projection."""

    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.glu, self.down = nn.Linear(d, 4 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        q, k, v = (z.unflatten(-1, (-1, 32)).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.glu(self.glu(self.n2(x)), -1))


class Recogniser(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.front = nn.Linear(4 * o.mels, o.dim)
        self.body = nn.Sequential(*[GatedMix(o.dim) for _ in range(o.depth)])
        self.out = nn.Linear(o.dim, o.phones)

    def forward(self, x):
        return self.out(self.body(self.front(x.unflatten(1, (-1, 4)).flatten(2))))


def corpus(o, device):
    g = torch.Generator(device).manual_seed(0)
    for _ in range(o.steps):
        yield (
            torch.randn(o.batch, o.frames, o.mels, device=device, generator=g),
            torch.randint(1, o.phones, (o.batch, o.labels), device=device, generator=g),
        )


class Session:
    def __init__(self, o):
        self.o = o
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.autograd.set_detect_anomaly(o.debug.trace_backward)
        self.net = Recogniser(o).to(self.device)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-4, fused=True)
        self.in_len = torch.full((o.batch,), o.frames // 4, dtype=torch.long)
        self.out_len = torch.full((o.batch,), o.labels, dtype=torch.long)

    def objective(self, feats, phones):
        with torch.autocast(self.device, torch.bfloat16):
            logits = self.net(feats)
        logp = F.log_softmax(logits.float(), -1).transpose(0, 1)
        return F.ctc_loss(logp, phones, self.in_len, self.out_len)

    def run(self):
        for i, (feats, phones) in enumerate(corpus(self.o, self.device)):
            loss = self.objective(feats, phones)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if i % self.o.debug.log_every == 0:
                print(i, f"{loss.item():.3f}")


torch.manual_seed(0)
if os.environ.get("SMALL"):
    Session(Options(dim=32, depth=1, frames=64, labels=5, batch=2, steps=30)).run()
else:
    Session(Options()).run()
