"""Diffusion transformer on latents: adaptive norms, weight averaging, velocity target."""
from __future__ import annotations

import math
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.h, d // self.h).transpose(1, 3).unbind(2)
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class DiTBlock(nn.Module):
    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, h)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))
        self.cond = nn.Linear(d, d)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x) + self.cond(c)[:, None])
        return x + self.mlp(self.norm2(x))


class DiT(nn.Module):
    def __init__(self, d: int, h: int, depth: int, n: int, ch: int, classes: int) -> None:
        super().__init__()
        self.inp, self.out = nn.Linear(ch, d), nn.Linear(d, ch)
        self.pos = nn.Parameter(torch.randn(n, d) * 0.02)
        self.cls = nn.Embedding(classes, d)
        self.time = nn.Sequential(nn.Linear(256, d), nn.SiLU(), nn.Linear(d, d))
        self.blocks = nn.ModuleList([DiTBlock(d, h) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        self.register_buffer("freq", torch.exp(-math.log(1e4) * torch.arange(128) / 128), persistent=False)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        ang = 1000 * t[:, None] * self.freq
        c = self.time(torch.cat((ang.cos(), ang.sin()), -1)) + self.cls(y)
        x = self.inp(x) + self.pos
        for block in self.blocks:
            x = block(x, c)
        return self.out(self.norm(x))


def run(d: int, h: int, depth: int, n: int, ch: int, batch: int, steps: int) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(3)
    net = DiT(d, h, depth, n, ch, 1000).to(device)
    weights = list(net.parameters())
    average = [w.detach().clone() for w in weights]
    opt = torch.optim.AdamW(weights, lr=1e-4, fused=True)
    latents = torch.randn(batch, n, ch, device=device)
    labels = torch.randint(1000, (batch,), device=device)
    for step in range(1, steps + 1):
        t = torch.rand(batch, device=device)
        eps = torch.randn_like(latents)
        xt = torch.lerp(latents, eps, t[:, None, None])
        with torch.autocast(device.type, dtype=torch.bfloat16):
            v = net(xt, t, labels)
        loss = F.mse_loss(v.float(), eps - latents)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, weights, 1e-4)
        if step % 30 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    if os.environ.get("SMALL") == "1":
        run(32, 2, 2, 16, 16, 2, 30)
    else:
        run(1024, 16, 8, 256, 16, 48, 60)
