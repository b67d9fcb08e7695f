import os
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("TINY") == "1"
opt = SimpleNamespace(size=16 if small else 128, nz=16 if small else 128, ch=8 if small else 64,
                      bs=4 if small else 128, sprites=32 if small else 8192, steps=6 if small else 260,
                      lr=2e-4, slope=0.2)
dev = "cuda" if torch.cuda.is_available() else "cpu"
amp = lambda: torch.autocast(dev, torch.bfloat16, enabled=dev == "cuda")
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


class Rectify(nn.Module):
    """Sloped rectifier, even and odd part."""

    def __init__(self, slope):
        super().__init__()
        self.odd = 0.5 * (1 + slope)
        self.even = 0.5 * (1 - slope)

    def forward(self, x):
        return self.odd * x + self.even * x.abs()  # flaw: hand-written-activation|unfused-elementwise


class Down(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.c1 = nn.Conv2d(i, i, 3, padding=1)
        self.c2 = nn.Conv2d(i, o, 4, stride=2, padding=1)
        self.act = Rectify(opt.slope)

    def forward(self, x):
        return self.act(self.c2(self.act(self.c1(x))))


class Critic(nn.Module):
    def __init__(self, ch, size):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.down = nn.Sequential(Down(ch, 2 * ch), Down(2 * ch, 4 * ch), Down(4 * ch, 4 * ch))
        self.act = Rectify(opt.slope)
        self.score = nn.Linear(4 * ch, 1)

    def forward(self, x):
        h = self.down(self.act(self.stem(x)))
        return self.score(h.mean((2, 3))).squeeze(1)


class Painter(nn.Module):
    def __init__(self, nz, ch, size):
        super().__init__()
        self.side = size // 8
        self.fc = nn.Linear(nz, 4 * ch * self.side ** 2)
        self.ups = nn.Sequential(
            nn.ConvTranspose2d(4 * ch, 4 * ch, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * ch), nn.ReLU(True),
            nn.ConvTranspose2d(4 * ch, 2 * ch, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * ch), nn.ReLU(True),
            nn.ConvTranspose2d(2 * ch, ch, 4, 2, 1, bias=False), nn.BatchNorm2d(ch), nn.ReLU(True),
            nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        h = self.fc(z).view(len(z), self.side, self.side, -1).permute(0, 3, 1, 2)
        return self.ups(h)


torch.manual_seed(4)
G = Painter(opt.nz, opt.ch, opt.size).to(dev, memory_format=torch.channels_last)
D = Critic(opt.ch, opt.size).to(dev, memory_format=torch.channels_last)
adam = lambda net: torch.optim.Adam(net.parameters(), lr=opt.lr, betas=(0.0, 0.99), fused=dev == "cuda")
optG, optD = adam(G), adam(D)

# sprites, features last, uint8
yy, xx = torch.meshgrid(torch.linspace(-1, 1, opt.size), torch.linspace(-1, 1, opt.size), indexing="ij")
radius = (xx.square() + yy.square()).sqrt().to(dev)
size = torch.rand(opt.sprites, 1, 1, 1, device=dev)
tint = torch.rand(opt.sprites, 1, 1, 3, device=dev)
sprites = torch.empty(opt.sprites, opt.size, opt.size, 3, dtype=torch.uint8, device=dev)
for part in torch.arange(opt.sprites, device=dev).split(1024):
    sprites[part] = ((radius[None, :, :, None] < size[part]) * tint[part] * 255).to(torch.uint8)
half = torch.bfloat16 if dev == "cuda" else torch.float32


def real_batch():
    pick = torch.randint(opt.sprites, (opt.bs,), device=dev)
    return (sprites[pick].to(half) / 127.5 - 1).permute(0, 3, 1, 2)


logs = torch.zeros(opt.steps, 2, device=dev)
for step in range(opt.steps):
    z = torch.randn(opt.bs, opt.nz, device=dev)
    with amp():
        fake = G(z)
        lossD = F.softplus(D(fake.detach())).mean() + F.softplus(-D(real_batch())).mean()
    optD.zero_grad(set_to_none=True)
    lossD.backward()
    optD.step()

    D.requires_grad_(False)
    with amp():
        lossG = F.softplus(-D(fake)).mean()
    optG.zero_grad(set_to_none=True)
    lossG.backward()
    optG.step()
    D.requires_grad_(True)
    logs[step, 0], logs[step, 1] = lossD.detach(), lossG.detach()

print("D %.3f G %.3f" % tuple(logs[-4:].mean(0).tolist()))
