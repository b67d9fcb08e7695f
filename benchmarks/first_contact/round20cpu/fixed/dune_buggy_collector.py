"""Collects logged drives of a dune buggy for offline learning: many cars at once, a noisy policy steers."""
import argparse
import math
from dataclasses import dataclass

import torch
from torch import nn

SENSORS = 42


@dataclass
class Drives:
    seen: torch.Tensor
    steered: torch.Tensor
    earned: torch.Tensor

    def returns(self, discount):
        weights = discount ** torch.arange(len(self.earned))
        return weights @ self.earned


class Dunes:
    """Cars on a field of sine-shaped dunes; each one has a fixed array of sensors, which mix what matters."""

    def __init__(self, cars, generator):
        self.cars = cars
        self.generator = generator
        self.array = torch.randn(6, SENSORS, generator=generator)

    def reset(self):
        self.place = torch.rand(self.cars, 2, generator=self.generator) * 20
        self.heading = torch.rand(self.cars, generator=self.generator) * 2 * math.pi
        self.speed = torch.zeros(self.cars)
        return self.look()

    def height(self, x, y):
        return torch.sin(0.4 * x) * torch.cos(0.3 * y)

    def look(self):
        own = torch.stack(
            [self.speed, self.heading.sin(), self.heading.cos(), self.height(*self.place.T), *(self.place.T / 20)], 1
        )
        return torch.cat([own, own @ self.array], 1)

    def step(self, action):
        self.heading = self.heading + 0.2 * action[:, 0]
        slope = self.height(*self.place.T)
        self.speed = (0.95 * self.speed + 0.1 * action[:, 1] - 0.02 * slope).clamp(-1, 2)
        ahead = torch.stack([self.heading.cos(), self.heading.sin()], 1)
        self.place = self.place + 0.1 * self.speed[:, None] * ahead
        reward = self.speed - 0.1 * action.square().sum(1)
        return self.look(), reward


class Driver(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(SENSORS + 6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )

    def forward(self, seen):
        return torch.tanh(self.body(seen))


@torch.inference_mode()
def drive(world, driver, length, noise, generator):
    seen = world.reset()
    actions, rewards = [], []
    views = []
    for _ in range(length):
        wanted = driver(seen)
        wanted = wanted + noise * torch.randn(wanted.shape, generator=generator)
        views.append(seen)
        seen, reward = world.step(wanted)
        actions.append(wanted)
        rewards.append(reward)
    return Drives(torch.stack(views), torch.stack(actions), torch.stack(rewards))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cars", type=int, default=1024)
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--drives", type=int, default=4)
    parser.add_argument("--noise", type=float, default=0.3)
    options = parser.parse_args()
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(11)
    world = Dunes(options.cars, generator)
    driver = Driver().eval()
    for number in range(options.drives):
        drives = drive(world, driver, options.length, options.noise, generator)
        worth = drives.returns(0.99)
        print(
            f"drive {number}: {tuple(drives.seen.shape)} views, return {worth.mean():.3f} +- {worth.std():.3f}, "
            f"steering {drives.steered.std():.3f}, senses {drives.seen[..., 6:].mean():.4f}"
        )


if __name__ == "__main__":
    main()
