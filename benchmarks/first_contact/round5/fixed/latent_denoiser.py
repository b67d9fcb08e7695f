import os
import torch
from torch import nn
import torch.nn.functional as F

LOW = os.environ.get("SMALL") == "1"
hp = dict(ch=32, res=8, bs=2, steps=30, heads=2) if LOW else dict(ch=512, res=32, bs=24, steps=60, heads=8)
dev = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True


class SpatialMix(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.scale = heads, (c // heads) ** -0.5
        self.norm = nn.GroupNorm(16, c)
        self.qkv = nn.Linear(c, 3 * c)
        self.back = nn.Linear(c, c)

    def forward(self, x):
        b, c, hh, ww = x.shape
        t = self.norm(x).permute(0, 2, 3, 1).reshape(b, hh * ww, c)
        q, k, v = self.qkv(t).view(b, hh * ww, 3, self.heads, -1).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, scale=self.scale).transpose(1, 2)
        y = self.back(y.reshape(b, hh * ww, c))
        return x + y.view(b, hh, ww, c).permute(0, 3, 1, 2)


class ConvMix(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.GroupNorm(16, c)
        self.conv = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.conv(F.silu(self.norm(x)))


class Latent(nn.Module):
    def __init__(self, c, heads, depth=3):
        super().__init__()
        self.first = nn.Conv2d(4, c, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(64, c), nn.SiLU(), nn.Linear(c, c))
        self.mix = nn.Sequential(*[m for _ in range(depth) for m in (ConvMix(c), SpatialMix(c, heads))])
        self.last = nn.Conv2d(c, 4, 3, padding=1)

    def forward(self, x, temb):
        h = self.first(x) + self.time(temb)[:, :, None, None]
        return self.last(self.mix(h))


net = Latent(hp["ch"], hp["heads"]).to(dev, memory_format=torch.channels_last)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
freq = torch.exp(torch.linspace(0, -6, 32, device=dev))
clean = torch.randn(hp["bs"], 4, hp["res"], hp["res"], device=dev)

for it in range(hp["steps"]):
    t = torch.rand(hp["bs"], device=dev)
    noise = torch.randn_like(clean)
    mixed = torch.lerp(clean, noise, t.view(-1, 1, 1, 1))
    ang = t[:, None] * 1000 * freq
    emb = torch.cat((ang.sin(), ang.cos()), 1)
    with torch.autocast(dev, dtype=torch.bfloat16):
        guess = net(mixed, emb)
    loss = F.mse_loss(guess.float(), noise - clean)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(it, loss.item())
