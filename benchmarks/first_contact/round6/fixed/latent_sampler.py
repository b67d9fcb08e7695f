"""Ancestral sampling from a latent diffusion model."""

import os
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class SamplerConfig:
    timesteps: int = 100
    batch: int = 64
    channels: int = 4
    side: int = 64
    width: int = 128
    seed: int = 11
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    noise_device: str = "cuda" if torch.cuda.is_available() else "cpu"


class TimeBlock(nn.Module):
    def __init__(self, cin: int, cout: int, emb: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, cin)
        self.first = nn.Conv2d(cin, cout, 3, padding=1)
        self.time = nn.Linear(emb, cout)
        self.second = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x: torch.Tensor, emb: torch.Tensor) -> torch.Tensor:
        h = self.first(F.silu(self.norm(x))) + self.time(emb)[:, :, None, None]
        return self.skip(x) + self.second(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, c: SamplerConfig) -> None:
        super().__init__()
        w = c.width
        self.embed = nn.Embedding(c.timesteps, w)
        self.inp = nn.Conv2d(c.channels, w, 3, padding=1)
        self.down1, self.down2 = TimeBlock(w, w, w), TimeBlock(w, 2 * w, w)
        self.mid = TimeBlock(2 * w, 2 * w, w)
        self.up1, self.up2 = TimeBlock(4 * w, w, w), TimeBlock(2 * w, w, w)
        self.out = nn.Conv2d(w, c.channels, 3, padding=1)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        e = F.silu(self.embed(t))
        a = self.down1(F.avg_pool2d(self.inp(x), 2), e)
        b = self.down2(F.avg_pool2d(a, 2), e)
        h = self.up1(torch.cat([self.mid(b, e), b], 1), e)
        h = self.up2(torch.cat([F.interpolate(h, scale_factor=2.0), a], 1), e)
        return self.out(F.interpolate(h, scale_factor=2.0))


class NoiseSource:
    def __init__(self, c: SamplerConfig) -> None:
        self.c = c
        self.rng = torch.Generator(device=c.noise_device).manual_seed(c.seed)

    def __call__(self) -> torch.Tensor:
        c = self.c
        z = torch.randn(c.batch, c.channels, c.side, c.side, generator=self.rng, device=c.noise_device)
        return z.to(c.device).contiguous(memory_format=torch.channels_last)


class Ancestral:
    def __init__(self, c: SamplerConfig, net: nn.Module) -> None:
        self.c, self.net, self.noise = c, net, NoiseSource(c)
        betas = torch.linspace(1e-4, 0.02, c.timesteps)
        bars = (1 - betas).cumprod(0)
        self.coef = [
            (float(b / (1 - ab).sqrt()), float((1 - b).rsqrt()), float(b.sqrt())) for b, ab in zip(betas, bars)
        ]
        self.times = torch.arange(c.timesteps, device=c.device)[:, None].expand(-1, c.batch).contiguous()

    def step(self, x: torch.Tensor, t: int) -> torch.Tensor:
        shrink, scale, sigma = self.coef[t]
        eps = self.net(x.bfloat16(), self.times[t]).float()
        x = (x - shrink * eps) * scale
        return x + sigma * self.noise() if t else x

    @torch.inference_mode()
    def sample(self) -> torch.Tensor:
        x = self.noise()
        for t in range(self.c.timesteps - 1, -1, -1):
            x = self.step(x, t)
        return x


def main() -> None:
    torch.backends.cudnn.benchmark = True
    c = SamplerConfig()
    if os.environ.get("SMALL"):
        c.timesteps, c.batch, c.side, c.width = 30, 2, 16, 16
    torch.manual_seed(0)
    net = Denoiser(c).to(c.device, torch.bfloat16, memory_format=torch.channels_last).eval()
    out = Ancestral(c, net).sample()
    print("latents", tuple(out.shape), f"{out.std().item():.3f}")


if __name__ == "__main__":
    main()
