"""Particle showers: attention over calorimeter hits, with padding and a distance bias between cells."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
HITS, EVENTS, WIDTH, HEADS, DEPTH, STEPS = (24, 2, 32, 4, 1, 6) if TINY else (256, 6, 64, 4, 2, 90)


class HitAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.temperature = (width // heads) ** 0.5
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width) for _ in range(3))
        self.back = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1))

    def forward(self, x, bias):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(x)), self.split(self.to_v(x))
        mixed = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=bias, scale=1 / self.temperature
        ).transpose(1, 2)
        return self.back(mixed.flatten(-2))


class Shower(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(DEPTH))
        self.attend = nn.ModuleList(HitAttention(WIDTH, HEADS) for _ in range(DEPTH))
        self.energy = nn.Linear(WIDTH, 1)

    def forward(self, hits, bias):
        x = self.embed(hits)
        for norm, attend in zip(self.norms, self.attend):
            x = x + attend(norm(x), bias)
        return self.energy(F.gelu(x)).squeeze(-1)


def events(count):
    gen = torch.Generator().manual_seed(17)
    for _ in range(count):
        hits = torch.randn(EVENTS, HITS, 4, generator=gen)
        present = torch.arange(HITS) < torch.randint(HITS * 3 // 4, HITS + 1, (EVENTS, 1), generator=gen)
        bias = -0.1 * torch.cdist(hits[..., :3], hits[..., :3])
        bias = bias.masked_fill(~present[:, None, :], float("-inf")).unsqueeze(1)
        yield hits, bias, present, hits[..., 3].abs()


torch.manual_seed(0)
net = Shower()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
sample = list(events(4))
began = time.perf_counter()
for n in range(STEPS):
    hits, bias, present, energy = sample[n % 4]
    loss = ((net(hits, bias) - energy).square() * present).sum() / present.sum()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(f"{(time.perf_counter() - began) / STEPS * 1e3:.1f} ms a step", file=sys.stderr)
print(f"energy loss {loss.item():.4f}")
