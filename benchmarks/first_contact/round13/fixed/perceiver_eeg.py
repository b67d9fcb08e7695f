"""Latents that read an EEG recording by cross attention (Perceiver style), sleep-stage classes."""
import math
import os
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HEADLESS = os.environ.get("TINY") == "1"
GPU = torch.cuda.is_available()
torch.set_float32_matmul_precision("high")


@dataclass
class Experiment:
    recordings: int = 32 if HEADLESS else 2048
    ticks: int = 64 if HEADLESS else 4096
    channels: int = 32
    latents: int = 8 if HEADLESS else 512
    dim: int = 32 if HEADLESS else 512
    heads: int = 2 if HEADLESS else 8
    rounds: int = 2 if HEADLESS else 4
    batch: int = 8 if HEADLESS else 32
    steps: int = 6 if HEADLESS else 360
    device: str = field(default="cuda" if GPU else "cpu")

    def data(self):
        gen = torch.Generator(self.device).manual_seed(0)
        kind = torch.bfloat16 if GPU else torch.float32
        stage = torch.randint(0, 5, (self.recordings,), device=self.device, generator=gen)
        wave = torch.randn(self.recordings, self.ticks, self.channels, device=self.device, generator=gen, dtype=kind)
        return wave.mul_(1 + stage.view(-1, 1, 1).to(kind) / 4), stage


class Reader(nn.Module):
    """q from the latents, k and v from the signal; both attend with the same code."""

    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.ask = nn.Linear(dim, dim, bias=False)
        self.tell = nn.Linear(dim, 2 * dim, bias=False)
        self.merge = nn.Linear(dim, dim)
        self.temperature = math.sqrt(dim // heads)

    def forward(self, latent: Tensor, signal: Tensor) -> Tensor:
        q = self.ask(latent).unflatten(-1, (self.h, -1))
        k, v = self.tell(signal).unflatten(-1, (2, self.h, -1)).unbind(2)
        read = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                              scale=1 / self.temperature)
        return self.merge(read.transpose(1, 2).flatten(2))


class Round(nn.Module):
    def __init__(self, e):
        super().__init__()
        self.nl, self.ns, self.nm = nn.LayerNorm(e.dim), nn.LayerNorm(e.dim), nn.LayerNorm(e.dim)
        self.cross = Reader(e.dim, e.heads)
        self.mlp = nn.Sequential(nn.Linear(e.dim, 4 * e.dim), nn.GELU(), nn.Linear(4 * e.dim, e.dim))

    def forward(self, latent, signal):
        latent = latent + self.cross(self.nl(latent), self.ns(signal))
        return latent + self.mlp(self.nm(latent))


class Perceiver(nn.Module):
    def __init__(self, e):
        super().__init__()
        self.latent = nn.Parameter(torch.randn(e.latents, e.dim) * 0.02)
        self.lift = nn.Linear(e.channels, e.dim)
        self.rounds = nn.ModuleList(Round(e) for _ in range(e.rounds))
        self.stage = nn.Linear(e.dim, 5)

    def forward(self, wave):
        signal = self.lift(wave)
        latent = self.latent.expand(len(wave), -1, -1)
        for r in self.rounds:
            latent = r(latent, signal)
        return self.stage(latent.mean(1))


def fit(e: Experiment):
    torch.manual_seed(9)
    wave, stage = e.data()
    model = Perceiver(e).to(e.device)
    optim = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05, fused=GPU)
    curve = torch.zeros(e.steps, device=e.device)
    i = 0
    while i < e.steps:
        pick = torch.randint(0, e.recordings, (e.batch,), device=e.device)
        with torch.autocast(e.device, torch.bfloat16, enabled=GPU):
            loss = F.cross_entropy(model(wave[pick]), stage[pick])
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        curve[i] = loss.detach()
        i += 1
    return curve


if __name__ == "__main__":
    curve = fit(Experiment())
    print("loss", [round(v, 4) for v in curve[[0, len(curve) // 2, -1]].tolist()])
