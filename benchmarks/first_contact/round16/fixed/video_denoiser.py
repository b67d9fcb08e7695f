"""Denoising diffusion on short video latents with a factorised space/time transformer."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Axis(nn.Module):
    """Attention along one axis of (batch, time, place, width), then a feed-forward part."""

    def __init__(self, width, heads, over_time):
        super().__init__()
        self.heads, self.over_time = heads, over_time
        self.norm_a = nn.LayerNorm(width)
        self.norm_f = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, shift):
        h = self.norm_a(x) + shift
        if self.over_time:
            h = h.transpose(1, 2)
        q, k, v = self.qkv(h).unflatten(-1, (3, self.heads, -1)).flatten(0, 1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(h.shape)
        if self.over_time:
            h = h.transpose(1, 2)
        x = x + self.proj(h)
        return x + self.feed(self.norm_f(x))


class Denoiser(nn.Module):
    def __init__(self, width, heads, depth, channels, frames, places):
        super().__init__()
        self.inp = nn.Linear(channels, width)
        self.level = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
        self.where = nn.Parameter(torch.randn(frames, places, width) * 0.02)
        self.blocks = nn.ModuleList(Axis(width, heads, bool(i % 2)) for i in range(depth))
        self.out = nn.Linear(width, channels)

    def forward(self, x, sigma):
        shift = self.level(sigma.view(-1, 1, 1, 1).log())
        h = self.inp(x) + self.where
        for block in self.blocks:
            h = block(h, shift)
        return self.out(h)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    batch, frames, places, channels, steps = (2, 4, 8, 4, 3) if TINY else (8, 16, 256, 16, 220)
    net = Denoiser(*((16, 2, 2) if TINY else (768, 12, 10)), channels, frames, places).to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.99), fused=True)
    losses = []
    for _ in range(steps):
        clean = torch.randn(batch, frames, places, channels, device=DEVICE)
        sigma = torch.rand(batch, device=DEVICE) + 0.1
        noise = torch.randn_like(clean)
        with torch.autocast(DEVICE, torch.bfloat16):
            guess = net(clean + sigma.view(-1, 1, 1, 1) * noise, sigma)
        loss = F.mse_loss(guess.float(), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach().clone())
    print(f"loss {torch.stack(losses).mean().item():.4f}")


main()
