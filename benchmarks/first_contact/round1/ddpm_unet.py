"""Denoising diffusion with a small convolutional net (DDPM)."""
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Schedule:
    steps: int = 1000
    device: str = "cpu"
    kept: torch.Tensor = field(init=False)

    def __post_init__(self):
        betas = torch.linspace(1e-4, 0.02, self.steps)
        self.kept = torch.cumprod(1 - betas, 0).to(self.device)

    def spoil(self, x, t, noise):
        a = self.kept[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.emb = nn.Linear(128, c)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.emb(e)[:, :, None, None]
        return x + self.c2(F.silu(self.n2(h)))


class UNet(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.t = nn.Embedding(1000, 128)
        self.inp, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
        self.down, self.up = nn.Conv2d(c, c, 4, 2, 1), nn.ConvTranspose2d(c, c, 4, 2, 1)
        self.a, self.b, self.c = Res(c), Res(c), Res(c)

    def forward(self, x, t):
        e = self.t(t)
        h = self.a(self.inp(x), e)
        m = self.up(self.b(self.down(h), e))
        return self.out(self.c(h + m, e))


class Diffusion:
    def __init__(self):
        torch.backends.cudnn.benchmark = True
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.plan = Schedule(device=self.device)
        self.net = UNet().to(self.device, memory_format=torch.channels_last)
        self.opt = torch.optim.AdamW(self.net.parameters(), 2e-4, fused=True)

    def draw(self, like):
        noise = torch.randn(like.size())  # flaw: tensor-made-on-host
        return noise.to(self.device)  # flaw: tensor-made-on-host

    def train(self, images, iterations):
        for _ in range(iterations):
            t = torch.randint(0, 1000, (len(images),), device=self.device)
            noise = self.draw(images)
            with torch.autocast(self.device, torch.bfloat16):
                guess = self.net(self.plan.spoil(images, t, noise).contiguous(memory_format=torch.channels_last), t)
            loss = F.mse_loss(guess.float(), noise)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


if __name__ == "__main__":
    d = Diffusion()
    d.train(torch.randn(64, 3, 64, 64, device=d.device), 300)
