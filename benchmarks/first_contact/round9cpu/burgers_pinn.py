"""Physics-informed network for the viscous Burgers equation."""

import math

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on
torch.manual_seed(0)

NU = 0.01 / math.pi


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


def build(width=40, depth=5):
    layers = [nn.Linear(2, width), Sine()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), Sine()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def residual(net, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = net(torch.stack((x, t), 1)).squeeze(1)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t + u * u_x - NU * u_xx


def boundary(n):
    x = torch.rand(n) * 2 - 1
    start = torch.stack((x, torch.zeros(n)), 1)
    t = torch.rand(n)
    side = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
    wall = torch.stack((side, t), 1)
    points = torch.cat((start, wall))
    values = torch.cat((-torch.sin(math.pi * x), torch.zeros(n)))
    return points, values


net = build()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.998)

for step in range(500):
    x, t = torch.rand(384) * 2 - 1, torch.rand(384)
    points, values = boundary(64)
    physics = residual(net, x, t).square().mean()
    data = (net(points).squeeze(1) - values).square().mean()
    loss = physics + 10 * data
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        print(f"{step:5d} physics {physics.item():.5f} data {data.item():.5f}")

with torch.inference_mode():
    line = torch.linspace(-1, 1, 9)
    print("u(x, 0.5) =", net(torch.stack((line, torch.full_like(line, 0.5)), 1)).squeeze(1))
