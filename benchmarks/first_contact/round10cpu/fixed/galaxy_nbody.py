"""Leapfrog integration of a small galaxy with softened gravity."""

from typing import NamedTuple

import torch

G = 1.0
SOFTENING = 0.05


class State(NamedTuple):
    position: torch.Tensor
    velocity: torch.Tensor
    mass: torch.Tensor


def disk_galaxy(bodies, generator):
    radius = 0.2 + torch.rand(bodies, generator=generator)
    angle = 2 * torch.pi * torch.rand(bodies, generator=generator)
    height = 0.02 * torch.randn(bodies, generator=generator)
    position = torch.stack([radius * angle.cos(), radius * angle.sin(), height], dim=1)
    mass = torch.full((bodies,), 1.0 / bodies)
    speed = (radius / 1.2).sqrt()
    velocity = torch.stack(
        [-speed * angle.sin(), speed * angle.cos(), torch.zeros(bodies)], dim=1
    )
    return State(position, velocity, mass)


def accelerations(position, mass):
    offset = position[None, :] - position[:, None]
    distance2 = offset.square().sum(2) + SOFTENING**2
    weight = G * mass * distance2.pow(-1.5)
    return (weight[:, None] @ offset).squeeze(1)


def energy(state):
    kinetic = 0.5 * (state.mass * state.velocity.square().sum(1)).sum()
    distance = (torch.pdist(state.position).square() + SOFTENING**2).sqrt()
    pairs = torch.triu_indices(len(state.mass), len(state.mass), 1)
    potential = -G * (state.mass[pairs[0]] * state.mass[pairs[1]] / distance).sum()
    return (kinetic + potential).item()


def leapfrog(state, dt, steps):
    position, velocity, mass = state
    acceleration = accelerations(position, mass)
    for step in range(steps):
        velocity = velocity + 0.5 * dt * acceleration
        position = position + dt * velocity
        acceleration = accelerations(position, mass)
        velocity = velocity + 0.5 * dt * acceleration
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: energy {energy(State(position, velocity, mass)):.5f}")
    return State(position, velocity, mass)


@torch.inference_mode()
def main():
    state = disk_galaxy(600, torch.Generator().manual_seed(0))
    print(f"initial energy {energy(state):.5f}")
    leapfrog(state, dt=1e-3, steps=500)


if __name__ == "__main__":
    main()
