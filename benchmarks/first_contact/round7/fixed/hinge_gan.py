"""Hinge-loss GAN with spectral norm in the discriminator; two time scales."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm

CUDA = torch.cuda.is_available()
device = "cuda" if CUDA else "cpu"
BATCH, LATENT, WIDTH, STEPS, POOL = (96, 128, 64, 100, 1024) if CUDA else (2, 8, 4, 3, 8)


class UpBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)
        self.conv1 = nn.Conv2d(cin, cout, 3, 1, 1, bias=False)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1)
        self.skip = nn.Conv2d(cin, cout, 1)

    def forward(self, x):
        y = F.interpolate(F.relu(self.norm1(x)), scale_factor=2)
        y = self.conv2(F.relu(self.norm2(self.conv1(y)), inplace=True))
        return y + F.interpolate(self.skip(x), scale_factor=2)


class Generator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w
        self.start = nn.Linear(LATENT, 8 * w * 16)
        self.blocks = nn.Sequential(UpBlock(8 * w, 8 * w), UpBlock(8 * w, 4 * w), UpBlock(4 * w, 2 * w), UpBlock(2 * w, w))
        self.out = nn.Sequential(nn.BatchNorm2d(w), nn.ReLU(inplace=True), nn.Conv2d(w, 3, 3, 1, 1), nn.Tanh())

    def forward(self, z):
        x = self.start(z).view(-1, 8 * self.w, 4, 4).contiguous(memory_format=torch.channels_last)
        return self.out(self.blocks(x))


def down(cin, cout):
    return nn.Sequential(
        spectral_norm(nn.Conv2d(cin, cout, 3, 1, 1)),
        nn.LeakyReLU(0.2, inplace=True),
        spectral_norm(nn.Conv2d(cout, cout, 4, 2, 1)),
        nn.LeakyReLU(0.2, inplace=True),
    )


class Discriminator(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.blocks = nn.Sequential(down(3, w), down(w, 2 * w), down(2 * w, 4 * w), down(4 * w, 8 * w))
        self.out = spectral_norm(nn.Linear(8 * w, 1))

    def forward(self, x):
        return self.out(self.blocks(x).sum((2, 3)))


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
real_pool = torch.rand(POOL, 3, 64, 64, device=device).mul_(2).sub_(1).contiguous(memory_format=torch.channels_last)
G = Generator(WIDTH).to(device, memory_format=torch.channels_last)
D = Discriminator(WIDTH).to(device, memory_format=torch.channels_last)
g_opt = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9), fused=True)
d_opt = torch.optim.Adam(D.parameters(), lr=4e-4, betas=(0.0, 0.9), fused=True)
amp = torch.autocast(device, dtype=torch.bfloat16)


def latent():
    return torch.randn(BATCH, LATENT, device=device)


def discriminator_step():
    real = real_pool[torch.randint(0, POOL, (BATCH,), device=device)]
    with amp:
        with torch.no_grad():
            fake = G(latent())
        real_score, fake_score = D(real), D(fake)
        loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
    d_opt.zero_grad(set_to_none=True)
    loss.backward()
    d_opt.step()
    return loss.detach()


def generator_step():
    D.requires_grad_(False)
    with amp:
        loss = -D(G(latent())).mean()
    g_opt.zero_grad(set_to_none=True)
    loss.backward()
    g_opt.step()
    D.requires_grad_(True)
    return loss.detach()


for step in range(STEPS):
    for _ in range(2):
        d_loss = discriminator_step()
    g_loss = generator_step()
    if step % 25 == 0:
        print(f"{step:4d} D {d_loss.item():.3f} G {g_loss.item():.3f}")
