"""Pixel-space diffusion with v-prediction; keeps a moving average of the weights."""
import copy
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    width: int = 128
    side: int = 64
    batch: int = 96
    steps: int = 100
    lr: float = 2e-4
    decay: float = 0.999


class Res(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(16, cin), nn.GroupNorm(16, cout)
        self.c1, self.c2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.affine = nn.Linear(emb, cout)
        self.skip = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.affine(e)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class UNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.emb = nn.Sequential(nn.Linear(w, w), nn.SiLU(), nn.Linear(w, w), nn.SiLU())
        self.register_buffer("frequencies", torch.randn(w // 2) * 4)
        self.inp = nn.Conv2d(3, w, 3, padding=1)
        self.a = Res(w, w, w)
        self.b = Res(w, 2 * w, w)
        self.m = Res(2 * w, 2 * w, w)
        self.ub = Res(4 * w, w, w)
        self.ua = Res(2 * w, w, w)
        self.out = nn.Conv2d(w, 3, 3, padding=1)

    def forward(self, x, t):
        phase = t[:, None] * self.frequencies
        e = self.emb(torch.cat([phase.sin(), phase.cos()], 1))
        a = self.a(self.inp(x), e)
        b = self.b(F.avg_pool2d(a, 2), e)
        h = self.m(F.avg_pool2d(b, 2), e)
        h = self.ub(torch.cat([F.interpolate(h, scale_factor=2.0), b], 1), e)
        return self.out(self.ua(torch.cat([F.interpolate(h, scale_factor=2.0), a], 1), e))


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.slow, self.fast = list(self.model.parameters()), list(model.parameters())
        self.decay = decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.slow, self.fast, 1 - self.decay)


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    config = Config() if cuda else Config(width=16, side=16, batch=2, steps=2)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    model = UNet(config.width).to(device, memory_format=torch.channels_last)
    ema = EMA(model, config.decay)
    optimizer = torch.optim.AdamW(model.parameters(), config.lr, fused=cuda)
    photos = torch.rand(8 * config.batch, 3, config.side, config.side, device=device) * 2 - 1
    for step in range(config.steps):
        rows = torch.randint(len(photos), (config.batch,), device=device)
        x = photos[rows]
        t = torch.rand(config.batch, device=device)
        noise = torch.randn_like(x)
        alpha = torch.cos(t * torch.pi / 2).view(-1, 1, 1, 1)
        sigma = torch.sin(t * torch.pi / 2).view(-1, 1, 1, 1)
        noisy = torch.addcmul(alpha * x, sigma, noise).contiguous(memory_format=torch.channels_last)
        velocity = torch.addcmul(alpha * noise, sigma, x, value=-1)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(noisy, t)
        loss = F.mse_loss(predicted.float(), velocity)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ema.update()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
