import os
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F

toy = os.environ.get("SMALL") is not None
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True

B, RES, CH, T, STEPS = (2, 16, 16, 50, 30) if toy else (64, 128, 64, 1000, 100)


class FiLMBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1 = nn.GroupNorm(8, cin)
        self.c1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.n2 = nn.GroupNorm(8, cout)
        self.c2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.shift = nn.Linear(emb, cout)
        self.skip = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.shift(e)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Eps(nn.Module):
    def __init__(self, ch=CH):
        super().__init__()
        emb = ch * 4
        self.time = nn.Sequential(nn.Embedding(T, emb), nn.Linear(emb, emb), nn.SiLU())
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.d2 = FiLMBlock(ch, ch, emb), FiLMBlock(ch * 2, ch * 2, emb)
        self.mid = FiLMBlock(ch * 4, ch * 4, emb)
        self.down1 = nn.Conv2d(ch, ch * 2, 3, 2, 1)
        self.down2 = nn.Conv2d(ch * 2, ch * 4, 3, 2, 1)
        self.up2, self.up1 = FiLMBlock(ch * 6, ch * 2, emb), FiLMBlock(ch * 3, ch, emb)
        self.out = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        e = self.time(t)
        a = self.d1(self.inp(x), e)
        b = self.d2(self.down1(a), e)
        m = self.mid(self.down2(b), e)
        b = self.up2(torch.cat([F.interpolate(m, scale_factor=2), b], 1), e)
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], 1), e)
        return self.out(a)


betas = torch.linspace(1e-4, 0.02, T, device=device)
alpha_bar = torch.cumprod(1 - betas, 0)
root_a, root_1ma = alpha_bar.sqrt(), (1 - alpha_bar).sqrt()

pool = torch.rand(B * 4, 3, RES, RES, device=device).mul_(2).sub_(1).to(memory_format=torch.channels_last)
model = Eps().to(device, memory_format=torch.channels_last)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=device.type == "cuda")
amp = torch.autocast(device.type, torch.bfloat16) if device.type == "cuda" else nullcontext()


def q_sample(x0, t, noise):
    return torch.addcmul(root_a[t].view(-1, 1, 1, 1) * x0, root_1ma[t].view(-1, 1, 1, 1), noise)


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
    if (step + 1) % 50 == 0:
        print(f"step {step + 1}: mse {loss.item():.4f}")
