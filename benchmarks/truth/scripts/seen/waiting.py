"""Steps that wait: sleeps as for a network or a disk, .item() in a loop, a generator of batches."""

import time

import torch
from torch import nn


def batches():
    while True:
        time.sleep(0.004)
        x = torch.randn(512, 128)
        yield x, x.sum(1, keepdim=True)


def fetch(seconds):
    time.sleep(seconds)
    return seconds


def main():
    net = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for x, y in batches():
        fetch(0.002)
        prediction = net(x)
        error = (prediction - y).abs()
        worst = 0.0
        for value in error[:200]:
            worst = max(worst, value.item())
        loss = error.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() != loss.item():
            break


main()
