"""A GAN for terrain patches; the hooks log what each player loses."""
import torch
import torch.nn.functional as F
from torch import nn

LATENT, SIDE, BATCH, STEPS = 64, 24, 64, 120


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(LATENT, 768), nn.LeakyReLU(0.2), nn.Linear(768, 1024), nn.LeakyReLU(0.2),
            nn.Linear(1024, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, SIDE * SIDE), nn.Tanh())

    def forward(self, z):
        return self.body(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SIDE * SIDE, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))

    def forward(self, patch):
        return self.body(patch).squeeze(-1)


def terrain(generator):
    lattice = torch.randn(BATCH, 1, 4, 4, generator=generator)
    return torch.tanh(F.interpolate(lattice, size=(SIDE, SIDE), mode="bilinear", align_corners=False)).flatten(1)


class Game:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.rng = torch.Generator().manual_seed(seed + 1)
        self.g, self.d = Generator(), Critic()
        self.g_opt = torch.optim.Adam(self.g.parameters(), lr=1e-4, betas=(0.5, 0.99), fused=True)
        self.d_opt = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.99), fused=True)

    def noise(self):
        return torch.randn(BATCH, LATENT, generator=self.rng)

    def critic_turn(self, real):
        self.d_opt.zero_grad(set_to_none=True)
        fake = self.g(self.noise())  # flaw: wasted-gradient
        loss = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake)).mean()
        loss.backward()
        self.d_opt.step()
        return loss.item()

    def generator_turn(self):
        self.g_opt.zero_grad(set_to_none=True)
        self.d.requires_grad_(False)
        loss = F.softplus(-self.d(self.g(self.noise()))).mean()
        loss.backward()
        self.d.requires_grad_(True)
        self.g_opt.step()
        return loss.item()


game = Game(20)
log = []
for step in range(STEPS):
    log.append((game.critic_turn(terrain(game.rng)), game.generator_turn()))
tail = torch.tensor(log[-20:]).mean(0)
print(f"critic {tail[0]:.4f} generator {tail[1]:.4f}")
