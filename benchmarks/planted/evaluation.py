"""A validation every nine steps, in the same loop, with the same function."""

import time

import torch
from torch import nn

net = nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def loss_of(batch):
    time.sleep(0.004)  # = 4
    return net(batch).square().mean()


def validate():
    net.eval()
    total = 0.0
    with torch.inference_mode():
        for _ in range(5):
            total += loss_of(torch.randn(8, 16)).item()
            time.sleep(0.006)  # = 0
    net.train()
    return total


for at in range(100000):
    loss = loss_of(torch.randn(8, 16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.008)  # = 8
    if at % 9 == 8:
        validate()
