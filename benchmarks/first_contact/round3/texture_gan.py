import os
from collections import defaultdict

import torch
from torch import nn
import torch.nn.functional as F


class Meters:
    def __init__(self):
        self.values = defaultdict(list)

    def update(self, **losses):
        for name, value in losses.items():
            self.values[name].append(value.item())  # flaw: sync-in-step

    def __str__(self):
        return "  ".join(f"{k} {sum(v[-20:]) / len(v[-20:]):.3f}" for k, v in self.values.items())


def mlp_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.1, True))


class Gen(nn.Module):
    def __init__(self, z, c):
        super().__init__()
        self.start = nn.Linear(z, c * 16)
        self.up = nn.ModuleList(mlp_block(c, c) for _ in range(4))
        self.rgb = nn.Conv2d(c, 3, 1)
        self.c = c

    def forward(self, z):
        x = self.start(z).view(-1, self.c, 4, 4).contiguous(memory_format=torch.channels_last)
        for b in self.up:
            x = b(F.interpolate(x, scale_factor=2.0))
        return self.rgb(x).tanh()


class Disc(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), *(nn.Sequential(nn.LeakyReLU(0.1), nn.Conv2d(c, c, 3, 2, 1)) for _ in range(3)))
        self.head = nn.Linear(c * 16, 1)

    def forward(self, x):
        return self.head(self.net(x).flatten(1))


def hinge(real, fake):
    return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


def main():
    small = os.environ.get("SMALL") == "1"
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    z, c, batch, steps = (8, 4, 2, 30) if small else (128, 128, 48, 150)
    gen, disc = Gen(z, c).to(dev, memory_format=torch.channels_last), Disc(c).to(dev, memory_format=torch.channels_last)
    opt_g = torch.optim.Adam(gen.parameters(), 1e-4, betas=(0.0, 0.9), fused=True)
    opt_d = torch.optim.Adam(disc.parameters(), 4e-4, betas=(0.0, 0.9), fused=True)
    bank = (torch.rand(batch * 8, 3, 64, 64, device=dev) * 2 - 1).contiguous(memory_format=torch.channels_last)
    meters = Meters()
    for i in range(steps):
        real = bank[(i % 8) * batch :][:batch]
        with torch.autocast(dev, torch.bfloat16):
            fake = gen(torch.randn(batch, z, device=dev))
            d_real, d_fake = disc(real), disc(fake.detach())
            loss_d = hinge(d_real, d_fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        disc.requires_grad_(False)
        with torch.autocast(dev, torch.bfloat16):
            loss_g = -disc(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        disc.requires_grad_(True)
        meters.update(d=loss_d, g=loss_g, real=d_real.detach().mean(), fake=d_fake.detach().mean())
    print(meters)


if __name__ == "__main__":
    main()
