"""Denoising diffusion for height maps of sand dunes, patch tokens and adaptive blocks."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Setup:
    side: int = 32
    patch: int = 4
    width: int = 64
    depth: int = 4
    batch: int = 24
    steps: int = 320
    levels: int = 200
    lr: float = 4e-4


def dunes(count, side, gen):
    y, x = torch.meshgrid(torch.linspace(0, 1, side), torch.linspace(0, 1, side), indexing="ij")
    angle = torch.rand(count, 1, 1, generator=gen) * 0.9
    waves = 3 + 4 * torch.rand(count, 1, 1, generator=gen)
    shift = torch.rand(count, 1, 1, generator=gen) * 6.28
    ridge = torch.sin(6.28 * waves * (x * torch.cos(angle) + y * torch.sin(angle)) + shift)
    return torch.where(ridge > 0, ridge, 0.3 * ridge)


def patches(maps, p):
    b, h, w = maps.shape
    return maps.view(b, h // p, p, w // p, p).transpose(2, 3).reshape(b, -1, p * p)


class Whiten(nn.Module):
    def __init__(self, width, tiny=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.tiny = tiny

    def forward(self, tokens):
        centred = tokens - tokens.mean(-1, keepdim=True)  # flaw: hand-written-norm
        spread = (centred * centred).mean(-1, keepdim=True)  # flaw: hand-written-norm
        return centred / (spread + self.tiny).sqrt() * self.gain + self.shift  # flaw: hand-written-norm


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.first, self.second = Whiten(width), Whiten(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(mixed)
        return x + self.down(F.relu(self.up(self.second(x))))


class Denoiser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        tokens = (cfg.side // cfg.patch) ** 2
        self.inward = nn.Linear(cfg.patch**2, cfg.width)
        self.place = nn.Parameter(0.02 * torch.randn(1, tokens, cfg.width))
        self.level = nn.Embedding(cfg.levels, cfg.width)
        self.blocks = nn.ModuleList(Block(cfg.width) for _ in range(cfg.depth))
        self.last = Whiten(cfg.width)
        self.outward = nn.Linear(cfg.width, cfg.patch**2)

    def forward(self, noisy, level):
        x = self.inward(noisy) + self.place + self.level(level)[:, None]
        for block in self.blocks:
            x = block(x)
        return self.outward(self.last(x))


def main(cfg=Setup()):
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(11)
    data = patches(dunes(1200, cfg.side, gen), cfg.patch)
    angle = torch.linspace(0.02, math.pi / 2 - 0.02, cfg.levels)
    keep, add = torch.cos(angle), torch.sin(angle)
    net = Denoiser(cfg)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg.lr, fused=True)
    total = torch.zeros(())
    for step in range(1, cfg.steps + 1):
        clean = data[torch.randint(len(data), (cfg.batch,), generator=gen)]
        level = torch.randint(cfg.levels, (cfg.batch,), generator=gen)
        noise = torch.randn(clean.shape, generator=gen)
        noisy = keep[level][:, None, None] * clean + add[level][:, None, None] * noise
        loss = F.mse_loss(net(noisy, level), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        if step % 80 == 0:
            print(f"{step:4d}  noise error {total / 80:.4f}")
            total.zero_()


if __name__ == "__main__":
    main()
