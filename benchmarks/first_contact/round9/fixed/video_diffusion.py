"""Transformer diffusion on video latents: attention within frames, then along time, conditioned on noise level."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
config = dict(frames=16, side=16, channels=8, dim=640, depth=10, heads=10, batch=8, steps=100, pool=512)
if not cuda:
    config = dict(frames=4, side=4, channels=4, dim=32, depth=2, heads=2, batch=2, steps=3, pool=4)


def attend(qkv, heads):
    b, n, width = qkv.shape
    q, k, v = qkv.view(b, n, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, width // 3)


class SpaceTimeBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(3))
        self.space_qkv, self.space_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.time_qkv, self.time_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.gate = nn.Linear(dim, 3 * dim)

    def forward(self, x, emb):
        b, t, n, d = x.shape
        gates = self.gate(emb).view(b, 1, 1, 3, d).unbind(3)
        y = attend(self.space_qkv(self.norms[0](x)).view(b * t, n, 3 * d), self.heads)
        x = torch.addcmul(x, gates[0], self.space_out(y).view(b, t, n, d))
        y = self.time_qkv(self.norms[1](x)).transpose(1, 2).reshape(b * n, t, 3 * d)
        y = self.time_out(attend(y, self.heads)).view(b, n, t, d).transpose(1, 2)
        x = torch.addcmul(x, gates[1], y)
        return torch.addcmul(x, gates[2], self.mlp(self.norms[2](x)))


class VideoDenoiser(nn.Module):
    def __init__(self, frames, side, channels, dim, depth, heads):
        super().__init__()
        self.inp, self.out = nn.Linear(channels, dim), nn.Linear(dim, channels)
        self.space = nn.Parameter(torch.randn(1, 1, side * side, dim) * 0.02)
        self.time = nn.Parameter(torch.randn(1, frames, 1, dim) * 0.02)
        self.level = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.blocks = nn.ModuleList(SpaceTimeBlock(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        frequencies = torch.exp(torch.linspace(0, math.log(1000), dim // 2))
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, x, sigma):
        angles = sigma.log()[:, None] * self.frequencies / 4
        emb = self.level(torch.cat([angles.sin(), angles.cos()], dim=-1))
        x = self.inp(x) + self.space + self.time
        for block in self.blocks:
            x = block(x, emb)
        return self.out(self.norm(x))


def loss_fn(model, latents):
    """Preconditioned denoising loss with log-normal noise levels."""
    sigma = torch.randn(len(latents), device=device).mul_(1.2).sub_(1.2).exp_()
    s = sigma.view(-1, 1, 1, 1)
    noisy = latents + torch.randn_like(latents) * s
    scale = (s.square() + 0.25).sqrt()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        residual = model(noisy / scale, sigma)
    denoised = noisy * 0.25 / scale.square() + residual.float() * (0.5 * s / scale)
    return ((denoised - latents).square() * (scale / (0.5 * s)).square()).mean()


def train():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    c = config
    model = VideoDenoiser(c["frames"], c["side"], c["channels"], c["dim"], c["depth"], c["heads"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.99), fused=cuda)
    latents = torch.randn(c["pool"], c["frames"], c["side"] ** 2, c["channels"], device=device) * 0.5
    for step in range(c["steps"]):
        rows = torch.randint(0, c["pool"], (c["batch"],), device=device)
        loss = loss_fn(model, latents[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or step == c["steps"] - 1:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    train()
