"""Scenarios of yield curves from a Wasserstein GAN with clipped critic weights (five critic updates per round)."""
import torch
from torch import nn

TENORS, DAYS, LATENT, BATCH = 12, 10, 32, 192


def nelson_siegel(count, gen):
    """Ten-day moves of curves whose level, slope and hump follow random walks."""
    tenor = torch.tensor([0.25, 0.5, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30])
    decay = tenor / 1.8
    slope = (1 - torch.exp(-decay)) / decay
    basis = torch.stack([torch.ones(TENORS), slope, slope - torch.exp(-decay)])
    moves = torch.randn(count, DAYS, 3, generator=gen) * torch.tensor([0.05, 0.08, 0.12])
    noise = 0.01 * torch.randn(count, DAYS, TENORS, generator=gen)
    return (moves.cumsum(1) @ basis + noise).flatten(1)


class Generator(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(LATENT, width), nn.LeakyReLU(0.2),
            nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, DAYS * TENORS),
        )

    def sample(self, count):
        return self.body(torch.randn(count, LATENT))

    forward = sample


class Critic(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(DAYS * TENORS, width), nn.LeakyReLU(0.2),
            nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, 1),
        )

    def forward(self, curves):
        return self.body(curves)[:, 0]

    @torch.no_grad()
    def clip(self, bound):
        torch._foreach_clamp_max_(self.bounded, bound)
        torch._foreach_clamp_min_(self.bounded, -bound)

    @property
    def bounded(self):
        return list(self.parameters())


class Game:
    def __init__(self, curves):
        self.curves = curves
        self.maker, self.critic = Generator(), Critic()
        self.maker_opt = torch.optim.RMSprop(self.maker.parameters(), lr=5e-5, foreach=True)
        self.critic_opt = torch.optim.RMSprop(self.critic.parameters(), lr=5e-5, foreach=True)

    def critic_round(self):
        real = self.curves[torch.randint(len(self.curves), (BATCH,))]
        with torch.no_grad():
            made = self.maker.sample(BATCH)
        distance = self.critic(real).mean() - self.critic(made).mean()
        self.critic_opt.zero_grad()
        distance.neg().backward()
        self.critic_opt.step()
        self.critic.clip(0.05)
        return distance.detach()

    def maker_round(self):
        self.critic.requires_grad_(False)
        loss = self.critic(self.maker(BATCH)).mean().neg()
        self.maker_opt.zero_grad()
        loss.backward()
        self.maker_opt.step()
        self.critic.requires_grad_(True)

    def play(self, rounds):
        for number in range(1, rounds + 1):
            for _ in range(4):
                distance = self.critic_round()
            self.maker_round()
            if number % 80 == 0:
                yield number, distance.item()


if __name__ == "__main__":
    torch.manual_seed(44)
    real = nelson_siegel(6000, torch.Generator().manual_seed(44))
    game = Game(real / real.std())
    for number, distance in game.play(400):
        print(f"round {number:4d}  distance {distance:.5f}", flush=True)
    with torch.inference_mode():
        print(f"spread of made curves {game.maker.sample(2000).std():.4f} (real 1.0)")
