# Small hinge GAN for 32x32 blobs. The generator's picture is detached for the critic's own update.
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    batch: int = 16
    latent: int = 32
    iters: int = 700
    report: int = 350


class Generator(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.fc = nn.Linear(latent, 32 * 8 * 8)
        self.up = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 32, 8, 8))


def critic():
    return nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(32 * 64, 1))


class Blobs:
    def __init__(self, gen):
        self.gen = gen
        axis = torch.linspace(-1, 1, 32)
        self.yy, self.xx = torch.meshgrid(axis, axis, indexing="ij")

    def draw(self, n):
        c = torch.rand(n, 2, 1, 1, generator=self.gen) - 0.5
        return 2 * torch.exp(-((self.yy - c[:, 0]) ** 2 + (self.xx - c[:, 1]) ** 2) / 0.08).unsqueeze(1) - 1


def main(o):
    torch.manual_seed(9)
    torch.set_num_threads(1)
    G, D = Generator(o.latent), critic()
    og = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)
    od = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.99), fused=True)
    source = Blobs(torch.Generator().manual_seed(9))
    for i in range(1, o.iters + 1):
        real, z = source.draw(o.batch), torch.randn(o.batch, o.latent)
        fake = G(z)
        score_real, score_fake = D(torch.cat([real, fake.detach()])).chunk(2)
        loss_d = F.relu(1 - score_real).mean() + F.relu(1 + score_fake).mean()
        od.zero_grad()
        loss_d.backward()
        od.step()
        D.requires_grad_(False)
        loss_g = -D(fake).mean()
        og.zero_grad()
        loss_g.backward()
        og.step()
        D.requires_grad_(True)
        if i % o.report == 0:
            print(f"{i}: critic {loss_d.item():.4f} generator {loss_g.item():.4f}")


main(Options())
