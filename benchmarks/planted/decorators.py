"""A step inside decorators: timed, tried again, counted."""

import contextlib
import functools
import time

import torch
from torch import nn


def timed(function):
    @functools.wraps(function)
    def around(*arguments, **named):
        begin = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            around.took = time.perf_counter() - begin
            time.sleep(0.003)  # = 3

    return around


def again(times):
    def decorate(function):
        @functools.wraps(function)
        def around(*arguments, **named):
            for attempt in range(times):
                try:
                    return function(*arguments, attempt=attempt, **named)
                except RuntimeError:
                    time.sleep(0.002)  # = 4

        return around

    return decorate


@contextlib.contextmanager
def section(seconds):
    time.sleep(seconds)  # = 5
    yield
    time.sleep(seconds / 5)  # = 1


@timed
@again(times=3)
def step(net, optimizer, batch, attempt):
    if attempt < 2:
        raise RuntimeError("try again")
    with section(0.005):
        loss = net(batch).square().mean()
        time.sleep(0.008)  # = 8
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
while True:
    step(net, optimizer, torch.randn(8, 16))
