"""Evolution strategy for a population of controllers of a linear walker; the update is written by hand."""
import math
import os

import torch

small = "SMALL" in os.environ
POP, OBS, HID, ACT, T, GENS = (16, 8, 8, 4, 5, 30) if small else (2048, 64, 64, 16, 40, 80)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Mutation:
    """Antithetic Gaussian directions."""

    def __init__(self, dim, pop, sigma):
        self.dim, self.pop, self.sigma = dim, pop, sigma

    def draw(self):
        half = torch.randn(self.pop // 2, self.dim).to(device)  # flaw: tensor-made-on-host
        return torch.cat([half, -half])


class World:
    def __init__(self):
        g = torch.Generator(device).manual_seed(2)
        self.a = torch.randn(OBS, OBS, generator=g, device=device) / math.sqrt(OBS) * 0.9
        self.b = torch.randn(ACT, OBS, generator=g, device=device) / math.sqrt(ACT)
        self.goal = torch.randn(OBS, generator=g, device=device)

    def episode(self, policy, pop):
        x = torch.zeros(pop, 1, OBS, device=device)
        score = torch.zeros(pop, device=device)
        for _ in range(T):
            u = policy(x)
            x = torch.tanh(x @ self.a + u @ self.b)
            score -= (x - self.goal).square().mean((1, 2))
        return score


def as_policy(theta):
    cut = OBS * HID
    w1 = theta[:, :cut].view(-1, OBS, HID)
    w2 = theta[:, cut:].view(-1, HID, ACT)
    return lambda x: torch.bmm(torch.tanh(torch.bmm(x, w1)), w2)


def ranks(score):
    order = score.argsort().argsort().float()
    return order / (len(score) - 1) - 0.5


@torch.no_grad()
def evolve():
    torch.manual_seed(0)
    dim = OBS * HID + HID * ACT
    centre = torch.randn(dim, device=device) * 0.1
    velocity = torch.zeros_like(centre)
    mutate, world = Mutation(dim, POP, 0.05), World()
    for gen in range(GENS):
        eps = mutate.draw()
        score = world.episode(as_policy(centre + mutate.sigma * eps), POP)
        step = ranks(score) @ eps / (POP * mutate.sigma)
        velocity.mul_(0.9).add_(step)
        centre.add_(velocity, alpha=0.02)
        if gen % 20 == 0:
            print(f"generation {gen:3d} mean {score.mean().item():.3f}")


evolve()
