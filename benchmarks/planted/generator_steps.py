"""Steps that a generator makes: the loop sends batches in and takes losses out."""

import time

import torch
from torch import nn


def numbers():
    at = 0
    while True:
        time.sleep(0.004)  # = 4
        yield at
        at += 1


def batches():
    for number in numbers():
        time.sleep(0.006)  # = 6
        yield torch.full((8, 16), float(number % 7))


def stepper(net, optimizer):
    loss = None
    while True:
        batch = yield loss
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        time.sleep(0.01)  # = 10
        loss.backward()
        optimizer.step()


def losses(net, optimizer):
    steps = stepper(net, optimizer)
    next(steps)
    yield from (steps.send(batch) for batch in batches())


net = nn.Linear(16, 16)
history = []
for loss in losses(net, torch.optim.SGD(net.parameters(), lr=1e-3)):
    time.sleep(0.003)  # = 3
    history.append(float(loss))
