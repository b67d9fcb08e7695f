"""Functions in functions, lambdas, and what they close over."""

import time

import torch
from torch import nn


def compose(*functions):
    def composed(value):
        for function in functions:
            value = function(value)
        return value

    return composed


def make_step(net, optimizer):
    losses = []

    def paused(seconds):
        def pause(value):
            time.sleep(seconds)  # = 9
            return value

        return pause

    def forward(batch):
        hidden = (lambda value: (time.sleep(0.004), net(value))[1])(batch)  # = 4
        return hidden.square().mean()

    def learn(loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    keep = lambda loss: losses.append(loss.item())  # noqa: E731
    return compose(paused(0.002), forward, paused(0.007), learn, keep)


net = nn.Linear(16, 16)
step = make_step(net, torch.optim.SGD(net.parameters(), lr=1e-3))
batch = lambda: [torch.randn(8, 16), time.sleep(0.005)][0]  # noqa: E731  # = 5
while True:
    step(batch())
