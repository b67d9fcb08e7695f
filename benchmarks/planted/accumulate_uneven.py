"""Gradients of 3, 1, 4 and 2 batches, in turn, before a step."""

import itertools
import time

import torch
from torch import nn

net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for parts in itertools.cycle((3, 1, 4, 2)):
    for _ in range(parts):
        time.sleep(0.002)  # = 5
        loss = net(torch.randn(8, 16)).square().mean() / parts
        loss.backward()
        time.sleep(0.003)  # = 7.5
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.006)  # = 6
