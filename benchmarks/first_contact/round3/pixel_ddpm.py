import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
SMALL = "SMALL" in os.environ
CH = 8 if SMALL else 128
RES = 16 if SMALL else 32
BS = 2 if SMALL else 128
ITERS = 30 if SMALL else 100
T = 1000
dev = "cuda" if torch.cuda.is_available() else "cpu"


class ResBlock(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(4, i), nn.Conv2d(i, o, 3, 1, 1)
        self.n2, self.c2 = nn.GroupNorm(4, o), nn.Conv2d(o, o, 3, 1, 1)
        self.emb = nn.Linear(t, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.emb(e)[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.skip(x)


class Denoiser(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(c, 4 * c), nn.SiLU(), nn.Linear(4 * c, 4 * c), nn.SiLU())
        self.register_buffer("freq", torch.exp(-math.log(1e4) * torch.arange(c // 2) / (c // 2)))
        self.inp = nn.Conv2d(3, c, 3, 1, 1)
        self.d1, self.d2 = ResBlock(c, c, 4 * c), ResBlock(c, 2 * c, 4 * c)
        self.mid = ResBlock(2 * c, 2 * c, 4 * c)
        self.u2, self.u1 = ResBlock(4 * c, c, 4 * c), ResBlock(2 * c, c, 4 * c)
        self.out = nn.Conv2d(c, 3, 3, 1, 1)

    def forward(self, x, t):
        a = t[:, None] * self.freq
        e = self.time(torch.cat([a.sin(), a.cos()], 1))
        h1 = self.d1(self.inp(x), e)
        h2 = self.d2(F.avg_pool2d(h1, 2), e)
        m = self.mid(F.avg_pool2d(h2, 2), e)
        m = self.u2(torch.cat([F.interpolate(m, scale_factor=2.0), h2], 1), e)
        m = self.u1(torch.cat([F.interpolate(m, scale_factor=2.0), h1], 1), e)
        return self.out(m)


beta = torch.linspace(1e-4, 0.02, T, device=dev)
abar = torch.cumprod(1 - beta, 0)
net = Denoiser(CH).to(dev, memory_format=torch.channels_last)
opt = torch.optim.AdamW(net.parameters(), lr=2e-4, fused=True)
data = (torch.rand(BS * 8, 3, RES, RES, device=dev) * 2 - 1).contiguous(memory_format=torch.channels_last)

for it in range(ITERS):
    x0 = data[torch.randint(0, len(data), (BS,), device=dev)]
    t = torch.randint(0, T, (BS,), device=dev)
    eps = torch.randn_like(x0)
    a = abar[t][:, None, None, None]
    noisy = a.sqrt() * x0 + (1 - a).sqrt() * eps
    loss = F.mse_loss(net(noisy, t), eps)  # flaw: fp32-matmul
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (it + 1) % 50 == 0 or it + 1 == ITERS:
        print(it + 1, loss.item())
