"""Denoising diffusion in pixel space: a convolutional U-Net predicts the noise (epsilon objective)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1 if torch.cuda.is_available() else 8
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def timestep_embedding(t, dim):
    freqs = torch.exp(-math.log(10000) * torch.arange(dim // 2, device=t.device) / (dim // 2))
    args = t[:, None].float() * freqs
    return torch.cat([args.cos(), args.sin()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, cin), nn.GroupNorm(8, cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.proj = nn.Linear(temb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.proj(emb)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, base, temb=256):
        super().__init__()
        self.temb = temb
        self.embed = nn.Sequential(nn.Linear(temb, temb), nn.SiLU(), nn.Linear(temb, temb), nn.SiLU())
        self.stem = nn.Conv2d(3, base, 3, 2, 1)
        widths = [base, 2 * base, 4 * base]
        self.down = nn.ModuleList(ResBlock(a, b, temb) for a, b in zip([base, *widths], widths))
        self.mid = ResBlock(4 * base, 4 * base, temb)
        self.up = nn.ModuleList(ResBlock(a + b, b, temb) for a, b in zip([4 * base, 4 * base, 2 * base], widths[::-1]))
        self.out = nn.ConvTranspose2d(base, 3, 4, 2, 1)

    def forward(self, x, t):
        emb = self.embed(timestep_embedding(t, self.temb))
        x, skips = self.stem(x), []
        for block in self.down:
            x = block(x, emb)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.mid(x, emb)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skips.pop()], dim=1), emb)
        return self.out(x)


class GaussianDiffusion:
    def __init__(self, steps=1000):
        self.steps = steps
        betas = torch.linspace(1e-4, 0.02, steps)
        alphas_bar = torch.cumprod(1 - betas, 0)
        self.signal = alphas_bar.sqrt().to(DEVICE)
        self.sigma = (1 - alphas_bar).sqrt().to(DEVICE)

    def training_loss(self, model, x0):
        t = torch.randint(0, self.steps, (x0.shape[0],), device=x0.device)
        noise = torch.randn(x0.shape).to(x0.device)  # flaw: tensor-made-on-host
        a, s = self.signal[t].view(-1, 1, 1, 1), self.sigma[t].view(-1, 1, 1, 1)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            predicted = model((a * x0 + s * noise).contiguous(memory_format=torch.channels_last), t)
        return F.mse_loss(predicted.float(), noise)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    size, batch, steps = 256 // SCALE, max(2, 64 // SCALE**2), 80 if SCALE == 1 else 3
    photos = torch.randint(0, 256, (1024 // SCALE**2, 3, size, size), dtype=torch.uint8, device=DEVICE)
    model = UNet(64 // SCALE).to(DEVICE, memory_format=torch.channels_last)
    diffusion = GaussianDiffusion()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=SCALE == 1)
    average = torch.zeros((), device=DEVICE)
    for step in range(steps):
        rows = torch.randint(0, len(photos), (batch,), device=DEVICE)
        x0 = photos[rows].float().div_(127.5).sub_(1)
        loss = diffusion.training_loss(model, x0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.lerp_(loss.detach(), 0.05)
        if step % 40 == 39:
            print(f"{step + 1} steps, loss {average.item():.4f}")


if __name__ == "__main__":
    main()
