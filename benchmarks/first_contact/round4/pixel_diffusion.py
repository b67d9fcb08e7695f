import os
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F

toy = os.environ.get("SMALL") is not None
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True

B, RES, CH, T, STEPS = (2, 16, 16, 50, 30) if toy else (64, 128, 256, 1000, 100)


class Norm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class FiLMBlock(nn.Module):
    def __init__(self, c, emb):
        super().__init__()
        self.norm = Norm(c)
        self.c1 = nn.Conv2d(c, c, 3, padding=1)
        self.c2 = nn.Conv2d(c, c, 3, padding=1)
        self.shift = nn.Linear(emb, c)

    def forward(self, x, e):
        h = self.c1(self.norm(x)) + self.shift(e)[:, :, None, None]
        return x + self.c2(F.silu(h))


class Eps(nn.Module):
    """Works on 4x4 pixel blocks."""

    def __init__(self, ch=CH, depth=1 if toy else 4):
        super().__init__()
        self.time = nn.Sequential(nn.Embedding(T, ch), nn.Linear(ch, ch), nn.SiLU())
        self.inp = nn.Conv2d(3, ch, 4, stride=4)
        self.blocks = nn.ModuleList([FiLMBlock(ch, ch) for _ in range(depth)])
        self.out = nn.Conv2d(ch, 48, 3, padding=1)

    def forward(self, x, t):
        e = self.time(t)
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, e)
        return F.pixel_shuffle(self.out(h), 4)


betas = torch.linspace(1e-4, 0.02, T, device=device)
alpha_bar = torch.cumprod(1 - betas, 0)
root_a, root_1ma = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()

pool = torch.rand(B * 4, 3, RES, RES, device=device).mul_(2).sub_(1)
model = Eps().to(device, memory_format=torch.channels_last)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=device.type == "cuda")
amp = torch.autocast(device.type, torch.bfloat16) if device.type == "cuda" else nullcontext()


def q_sample(x0, t, noise):
    x = torch.addcmul(root_a[t].view(-1, 1, 1, 1) * x0, root_1ma[t].view(-1, 1, 1, 1), noise)
    return x.contiguous(memory_format=torch.channels_last)


for step in range(STEPS):
    x0 = pool[torch.randint(len(pool), (B,), device=device)]
    t = torch.randint(T, (B,), device=device)
    noise = torch.randn(B, 3, RES, RES).to(device)  # flaw: tensor-made-on-host
    with amp:
        pred = model(q_sample(x0, t, noise), t)
    loss = F.mse_loss(pred.float(), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (step + 1) % 25 == 0:
        print(f"step {step + 1}: mse {loss.item():.4f}")
