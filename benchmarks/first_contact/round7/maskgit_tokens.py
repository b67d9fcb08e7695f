"""Masked image-token modelling on VQ codes (16 x 16 tokens an image)."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    codebook: int = 16384
    dim: int = 512
    depth: int = 6
    heads: int = 8
    side: int = 16
    batch: int = 48
    steps: int = 160
    images: int = 4096
    lr: float = 4e-4

    @property
    def mask_token(self):
        return self.codebook

    @property
    def vocabulary(self):
        return self.codebook + 1  # flaw: misaligned-matmul


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.heads
        self.norm1, self.norm2 = nn.LayerNorm(s.dim), nn.LayerNorm(s.dim)
        self.qkv, self.proj = nn.Linear(s.dim, 3 * s.dim, bias=False), nn.Linear(s.dim, s.dim)
        self.mlp = nn.Sequential(nn.Linear(s.dim, 4 * s.dim), nn.GELU(), nn.Linear(4 * s.dim, s.dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class TokenTransformer(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.tokens = nn.Embedding(s.vocabulary, s.dim)
        self.position = nn.Parameter(torch.randn(s.side**2, s.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(s) for _ in range(s.depth)])
        self.norm = nn.LayerNorm(s.dim)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids):
        x = self.norm(self.blocks(self.tokens(ids) + self.position))
        return F.linear(x, self.tokens.weight)


def cosine_mask(ids, mask_token):
    ratio = torch.cos(torch.rand(len(ids), 1, device=ids.device) * math.pi / 2)
    hidden = torch.rand(ids.shape, device=ids.device) < ratio
    return ids.masked_fill(hidden, mask_token), ids.masked_fill(~hidden, -100)


def train(s, device):
    torch.manual_seed(0)
    codes = torch.randint(0, s.codebook, (s.images, s.side**2), device=device)
    model = TokenTransformer(s).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, betas=(0.9, 0.96), weight_decay=0.045, fused=True)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1, (i + 1) / 50))
    average = torch.zeros((), device=device)
    for step in range(s.steps):
        ids = codes[torch.randint(0, s.images, (s.batch,), device=device)]
        inputs, targets = cosine_mask(ids, s.mask_token)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        warmup.step()
        average.lerp_(loss.detach(), 0.05)
        if step % 40 == 0:
            print(f"step {step:4d}  loss {average.item():.3f}")


if __name__ == "__main__":
    if torch.cuda.is_available():
        train(Settings(), "cuda")
    else:
        train(Settings(codebook=64, dim=32, depth=2, heads=2, side=4, batch=4, steps=3, images=32), "cpu")
