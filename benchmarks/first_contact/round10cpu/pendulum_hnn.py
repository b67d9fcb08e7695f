"""Hamiltonian network for a double pendulum, trained through an unrolled integrator."""

import torch
from torch import nn


class Hamiltonian(nn.Module):
    def __init__(self, coordinates=2, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * coordinates, width),
            nn.Softplus(),
            nn.Linear(width, width),
            nn.Softplus(),
            nn.Linear(width, 1),
        )

    def field(self, state):
        energy = self.net(state).sum()
        (gradient,) = torch.autograd.grad(energy, state, create_graph=True)
        dq, dp = gradient.chunk(2, dim=1)
        return torch.cat([dp, -dq], dim=1)


def rollout(model, state, dt, steps):
    states = []
    for _ in range(steps):
        middle = state + 0.5 * dt * model.field(state)
        state = state + dt * model.field(middle)
        states.append(state)
    return torch.stack(states, dim=1)


def reference(state, dt, steps):
    """Two pendulums with a weak spring between them, in small steps."""
    q, p = state.chunk(2, dim=1)
    states = []
    for _ in range(steps):
        for _ in range(5):
            force = -torch.sin(q) - 0.3 * (q - q.flip(1))
            p = p + dt / 5 * force
            q = q + dt / 5 * p
        states.append(torch.cat([q, p], dim=1))
    return torch.stack(states, dim=1)


def train(iterations=240, batch=256, dt=0.1, steps=6):
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on
    model = Hamiltonian()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    starts = 2 * torch.rand(iterations, batch, 4) - 1
    targets = reference(starts.flatten(0, 1), dt, steps).view(iterations, batch, steps, 4)
    for iteration, (start, target) in enumerate(zip(starts, targets), 1):
        predicted = rollout(model, start.clone().requires_grad_(), dt, steps)
        loss = (predicted - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 60 == 0:
            print(f"iteration {iteration}: {loss.item():.6f}")


if __name__ == "__main__":
    train()
