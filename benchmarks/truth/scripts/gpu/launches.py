"""Small tensors in Python loops: bound by the host that launches."""

import torch
from torch import nn


def smooth(values, times):
    for _ in range(times):
        values = 0.9 * values + 0.1 * values.roll(1, 0)
    return values


def penalty(parameters):
    total = 0.0
    for parameter in parameters:
        total = total + parameter.abs().sum()
    return total


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(12))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(64, 32, device="cuda")
    while True:
        names = {str(i): i * i for i in range(4000)}
        h = smooth(x, 30)
        out = net(h)
        loss = out.square().mean() + 1e-6 * penalty(net.parameters())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert len(names) == 4000


main()
