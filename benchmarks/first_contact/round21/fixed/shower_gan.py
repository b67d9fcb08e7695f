"""Fast simulation of particle showers: a GAN for the energies in 1024 calorimeter cells, given nothing.

The critic is updated several times for each update of the generator (hinge loss).
"""
import itertools

import torch
import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.act = nn.GELU()
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(self.act(self.inner(self.norm(x))))


class Generator(nn.Sequential):
    def __init__(self, noise, width, blocks, cells):
        super().__init__(
            nn.Linear(noise, width),
            *[Residual(width) for _ in range(blocks)],
            nn.LayerNorm(width),
            nn.Linear(width, cells),
            nn.Softplus(),
        )
        self.noise = noise


class Critic(nn.Sequential):
    def __init__(self, cells, width):
        super().__init__(
            nn.Linear(cells, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, 8),  # eight heads, averaged
        )

    def forward(self, showers):
        return super().forward(showers).mean(1)


class Showers:
    """Energies of a made-up detector: a depth profile times a lateral one, with fluctuations."""

    def __init__(self, count, cells, device, seed=1):
        g = torch.Generator(device=device).manual_seed(seed)
        layers, rings = 32, cells // 32
        depth = torch.linspace(0.1, 8, layers, device=device)
        peak = 2.0 + torch.rand(count, 1, generator=g, device=device)
        profile = depth**peak * torch.exp(-depth * 1.1)
        ring = torch.exp(-torch.linspace(0, 4, rings, device=device) * (1 + torch.rand(count, 1, generator=g, device=device)))
        grid = (profile[:, :, None] * ring[:, None, :]).flatten(1)
        self.cells = grid * (0.8 + 0.4 * torch.rand(grid.shape, generator=g, device=device))
        self.random = g

    def draw(self, size):
        rows = torch.randint(len(self.cells), (size,), generator=self.random, device=self.cells.device)
        return self.cells[rows]


class AdversarialLoop:
    critic_updates = 3

    def __init__(self, generator, critic, data, batch, device, rates=(1e-4, 2e-4)):
        self.generator, self.critic, self.data, self.batch, self.device = generator, critic, data, batch, device
        self.g_optimizer = torch.optim.Adam(generator.parameters(), lr=rates[0], betas=(0.0, 0.99), fused=True)
        self.c_optimizer = torch.optim.Adam(critic.parameters(), lr=rates[1], betas=(0.0, 0.99), fused=True)

    def half(self):
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def fakes(self):
        noise = torch.randn(self.batch, self.generator.noise, device=self.device)
        return self.generator(noise)

    def update_critic(self):
        real = self.data.draw(self.batch)
        with self.half():
            with torch.no_grad():
                fake = self.fakes()
            margin_real = nn.functional.relu(1 - self.critic(real)).mean()
            margin_fake = nn.functional.relu(1 + self.critic(fake)).mean()
        loss = margin_real + margin_fake
        self.c_optimizer.zero_grad()
        loss.backward()
        self.c_optimizer.step()
        return loss.detach()

    def update_generator(self):
        self.critic.requires_grad_(False)
        with self.half():
            loss = self.critic(self.fakes()).mean().neg()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        self.critic.requires_grad_(True)
        return loss.detach()

    def __iter__(self):
        for number in itertools.count(1):
            for _ in range(self.critic_updates):
                critic_loss = self.update_critic()
            yield number, critic_loss, self.update_generator()


def main(steps=750, batch=16384, width=2048, blocks=2, cells=1024, noise=256):
    torch.manual_seed(6)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = Generator(noise, width, blocks, cells).to(device)
    critic = Critic(cells, 1024).to(device)
    loop = AdversarialLoop(generator, critic, Showers(65536, cells, device), batch, device)
    for number, critic_loss, generator_loss in itertools.islice(loop, steps):
        if number % 75 == 0:
            print(f"{number:5d}  critic {critic_loss.item():.4f}  generator {generator_loss.item():.4f}")


if __name__ == "__main__":
    main()
