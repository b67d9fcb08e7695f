"""Masked-nucleotide pretraining of a small genome encoder with linear position biases (ALiBi)."""
import math
import os
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"


@dataclass(frozen=True)
class Spec:
    window: int = 64 if TINY else 448
    width: int = 64
    heads: int = 4
    depth: int = 2
    batch: int = 2 if TINY else 3
    updates: int = 4 if TINY else 80


class BiasedMixer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.h, self.hd = spec.heads, spec.width // spec.heads
        self.inp = nn.Linear(spec.width, 3 * spec.width)
        self.outp = nn.Linear(spec.width, spec.width)

    def forward(self, x, bias):
        n, t, _ = x.shape
        q, k, v = self.inp(x).view(n, t, 3, self.h, self.hd).permute(2, 0, 3, 1, 4)
        energy = torch.einsum("nhqd,nhkd->nhqk", q, k).mul(1 / math.sqrt(self.hd)).add(bias)  # flaw: hand-written-attention
        energy = energy - energy.amax(-1, keepdim=True).detach()  # flaw: hand-written-attention
        mix = energy.exp()  # flaw: hand-written-attention
        mix = mix / mix.sum(-1, keepdim=True)  # flaw: hand-written-attention
        y = torch.einsum("nhqk,nhkd->nhqd", mix, v)  # flaw: hand-written-attention
        return self.outp(y.transpose(1, 2).reshape(n, t, -1))


class Layer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(spec.width), nn.LayerNorm(spec.width)
        self.mixer = BiasedMixer(spec)
        self.ffn = nn.Sequential(nn.Linear(spec.width, 4 * spec.width), nn.GELU(), nn.Linear(4 * spec.width, spec.width))

    def forward(self, x, bias):
        x = x + self.mixer(self.n1(x), bias)
        return x + self.ffn(self.n2(x))


class GenomeEncoder(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.emb = nn.Embedding(6, spec.width)
        self.layers = nn.ModuleList(Layer(spec) for _ in range(spec.depth))
        self.head = nn.Linear(spec.width, 4)
        slopes = torch.tensor([2.0 ** (-8 * (i + 1) / spec.heads) for i in range(spec.heads)])
        place = torch.arange(spec.window)
        self.register_buffer("bias", (-slopes[:, None, None] * (place[:, None] - place).abs())[None].contiguous())

    def forward(self, bases):
        x = self.emb(bases)
        for layer in self.layers:
            x = layer(x, self.bias)
        return self.head(x)


def windows(spec, gen):
    genome = torch.randint(0, 4, (200_000,), generator=gen)
    genome[3::7] = genome[2::7][: len(genome[3::7])]
    offsets = torch.arange(spec.window)
    for _ in range(spec.updates):
        at = torch.randint(0, len(genome) - spec.window, (spec.batch, 1), generator=gen)
        clean = genome[at + offsets]
        hidden = torch.rand(clean.shape, generator=gen) < 0.15
        yield clean.masked_fill(hidden, 5), clean.masked_fill(~hidden, -100)


def main():
    torch.manual_seed(11)
    spec, gen = Spec(), torch.Generator().manual_seed(5)
    net = GenomeEncoder(spec)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    began = time.perf_counter()
    for count, (seen, wanted) in enumerate(windows(spec, gen)):
        loss = F.cross_entropy(net(seen).flatten(0, 1), wanted.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if count % 20 == 0:
            print(f"{count:3d} {loss.item():.4f}")
    print(f"{(time.perf_counter() - began) / spec.updates * 1e3:.1f} ms", file=sys.stderr)
    print(f"end {loss.item():.4f}")


if __name__ == "__main__":
    main()
