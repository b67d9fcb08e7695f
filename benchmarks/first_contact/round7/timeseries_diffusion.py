"""Denoising diffusion over multivariate time series windows."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Args:
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    window = 256 if gpu else 16
    channels = 32 if gpu else 4
    dim = 512 if gpu else 32
    heads = 8 if gpu else 2
    depth = 6 if gpu else 2
    batch = 128 if gpu else 4
    steps = 120 if gpu else 4
    noise_steps = 1000


def timestep_embedding(t, dim):
    freqs = torch.exp(
        -math.log(10_000) * torch.arange(dim // 2, device=t.device, dtype=torch.float32) / (dim // 2)
    )
    angles = t[:, None].float() * freqs
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class DiTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.mlp(self.norm2(x))


class Denoiser(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.dim = a.dim
        self.inp = nn.Linear(a.channels, a.dim)
        self.time = nn.Sequential(nn.Linear(a.dim, a.dim), nn.SiLU(), nn.Linear(a.dim, a.dim))
        self.pos = nn.Parameter(torch.randn(a.window, a.dim) * 0.02)
        self.blocks = nn.Sequential(*[DiTBlock(a.dim, a.heads) for _ in range(a.depth)])
        self.norm = nn.LayerNorm(a.dim)
        self.out = nn.Linear(a.dim, a.channels)

    def forward(self, x, t):
        cond = self.time(timestep_embedding(t, self.dim))
        h = self.inp(x) + self.pos + cond[:, None]
        return self.out(self.norm(self.blocks(h)))


class GaussianDiffusion:
    def __init__(self, steps, device):
        betas = torch.linspace(1e-4, 0.02, steps, device=device)
        alpha_bar = torch.cumprod(1 - betas, dim=0)
        self.signal, self.sigma = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()
        self.steps = steps

    def loss(self, model, x0):
        t = torch.randint(self.steps, (len(x0),), device=x0.device)
        noise = torch.randn(x0.shape).to(x0.device)  # flaw: tensor-made-on-host
        noisy = self.signal[t, None, None] * x0 + self.sigma[t, None, None] * noise
        return F.mse_loss(model(noisy, t).float(), noise)


def main(a=Args):
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    phase = torch.rand(1024, 1, a.channels, device=a.device) * 6.28
    grid = torch.linspace(0, 20, a.window, device=a.device)[None, :, None]
    series = torch.sin(grid + phase)
    model = Denoiser(a).to(a.device)
    diffusion = GaussianDiffusion(a.noise_steps, a.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=a.gpu)
    for step in range(a.steps):
        batch = series[torch.randint(len(series), (a.batch,), device=a.device)]
        with torch.autocast(a.device.type, dtype=torch.bfloat16):
            loss = diffusion.loss(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 40 == 0:
            print(f"{step}: {loss.item():.4f}")
    print(f"final {loss.item():.4f}")


main()
