"""Objects, properties and comprehension chains around a small network with a hook."""

import torch
from torch import nn


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    @property
    def length(self):
        return (self.x**2 + self.y**2) ** 0.5


class Swarm:
    def __init__(self, count):
        self.places = [Vector(i * 0.1, i * 0.2) for i in range(count)]
        self.drift = Vector(0.01, -0.01)

    def advance(self):
        self.places = [place + self.drift for place in self.places]

    def lengths(self):
        return [place.length for place in self.places]

    def table(self):
        return {round(length, 3): at for at, length in enumerate(self.lengths())}


def remember(store):
    def hook(module, inputs, output):
        store["mean"] = output.detach().abs().mean().item()

    return hook


def main():
    swarm, store = Swarm(3000), {}
    net = nn.Sequential(nn.Linear(128, 512), nn.Hardswish(), nn.Linear(512, 128))
    net[0].register_forward_hook(remember(store))
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.01)
    x = torch.randn(256, 128)
    while True:
        swarm.advance()
        table = swarm.table()
        near = sum(1 for length in swarm.lengths() if length < 50)
        y = net(x)
        loss = nn.functional.huber_loss(y, x) + (len(table) + near + store["mean"]) * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
