# Draws samples of porous sandstone (binary voxel blocks, as tokens of 4x4x4 voxels) from a diffusion transformer.
# The weights are random here: only the sampler is exercised. `python sandstone_sampler.py`
from contextlib import contextmanager
from functools import partial
import math

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, DEPTH = 1024, 16, 6
TOKENS, VOXELS = 1024, 64
BLOCKS, LEVELS, ROUNDS = 24, 40, 18
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

Proj = partial(nn.Linear, dtype=torch.bfloat16, device=DEVICE)
Norm = partial(nn.LayerNorm, dtype=torch.bfloat16, device=DEVICE)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = Norm(WIDTH), Proj(WIDTH, 3 * WIDTH), Proj(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Feed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = Norm(WIDTH), Proj(WIDTH, 4 * WIDTH), Proj(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.write = Proj(VOXELS, WIDTH), Proj(WIDTH, VOXELS)
        self.place = nn.Parameter(torch.randn(TOKENS, WIDTH, device=DEVICE, dtype=torch.bfloat16) * 0.02)
        angle = torch.arange(LEVELS)[:, None] * torch.exp(torch.arange(WIDTH // 2) * (-math.log(1e4) / (WIDTH // 2)))
        self.register_buffer("level", torch.cat([angle.sin(), angle.cos()], 1).to(DEVICE, torch.bfloat16))
        self.body = nn.Sequential(*(layer() for _ in range(DEPTH) for layer in (Mixer, Feed)), Norm(WIDTH))

    def forward(self, x, level):
        return self.write(self.body(self.read(x) + (self.place + self.level[level])))


def cosine_levels(n):
    keep = [math.cos((i / n * 0.98 + 0.01) * math.pi / 2) ** 2 for i in range(n + 1)]
    return [(i, keep[i], keep[i - 1]) for i in range(n, 0, -1)]


class Usage:
    def __init__(self):
        self.highest = 0

    @contextmanager
    def bounded(self):
        """Keeps this process small, because the post-processing shares the card at the institute."""
        try:
            yield
        finally:
            if DEVICE.type == "cuda":
                self.highest = max(self.highest, torch.cuda.memory_reserved())


def ddim(model, x, usage):
    for level, now, after in cosine_levels(LEVELS):
        with usage.bounded():
            noise = model(x, level - 1)
            clean = torch.add(x, noise, alpha=-math.sqrt(1 - now)).mul_(1 / math.sqrt(now)).clamp_(-3, 3)
            x = clean.mul_(math.sqrt(after)).add_(noise, alpha=math.sqrt(1 - after))
    return x


@torch.inference_mode()
def main():
    torch.manual_seed(404)
    model, usage = Denoiser().eval(), Usage()
    for r in range(ROUNDS):
        x = torch.randn(BLOCKS, TOKENS, VOXELS, device=DEVICE, dtype=torch.bfloat16)
        rock = ddim(model, x, usage)
        if r % 3 == 2:
            print(f"round {r + 1}: porosity {(rock > 0).float().mean().item():.4f}, peak {usage.highest / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
