"""A tree that a module goes through by calling itself, and one that plain functions do, each other."""

import time

import torch
from torch import nn


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.join, self.leaf = nn.Linear(32, 16), nn.Linear(16, 16)

    def forward(self, x, depth):
        if depth == 0:
            time.sleep(0.001)  # = 8
            return self.leaf(x)
        both = self(x, depth - 1), self(x, depth - 1)
        time.sleep(0.001)  # = 7
        return torch.tanh(self.join(torch.cat(both, -1)))


def even(number):
    if number == 0:
        time.sleep(0.004)  # = 4
        return True
    return odd(number - 1)


def odd(number):
    time.sleep(0.001)  # = 5
    return even(number - 1)


net = Tree()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    loss = net(torch.randn(8, 16), 3).square().mean()
    even(10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
