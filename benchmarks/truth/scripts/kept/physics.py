"""A network fitted to a differential equation: gradients of gradients, and a plain integrator."""

import math

import torch
from torch import nn


def integrate(steps, rate):
    position, speed = 1.0, 0.0
    path = []
    for _ in range(steps):
        force = -position - 0.1 * speed * abs(speed)
        speed += rate * force
        position += rate * speed
        path.append(position)
    return path


def residual(net, t):
    u = net(t)
    first = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), t, create_graph=True)[0]
    return second + u


net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(10**6):
    path = integrate(12000, 0.001)
    angles = [math.sin(value) * math.cos(value) for value in path]
    t = torch.rand(1024, 1, requires_grad=True)
    loss = residual(net, t).square().mean() + angles[-1] * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
