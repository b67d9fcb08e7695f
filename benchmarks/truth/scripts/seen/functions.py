"""Work in helper functions that others call: pure Python, numpy and torch mixed."""

import math

import numpy as np
import torch


def sieve(limit):
    flags = bytearray([1]) * limit
    for number in range(2, int(math.sqrt(limit)) + 1):
        if flags[number]:
            flags[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(flags)


def collatz(start):
    length = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        length += 1
    return length


def longest(count):
    best = 0
    for start in range(1, count):
        length = collatz(start)
        if length > best:  # noqa: PLR1730
            best = length
    return best


def whiten(values):
    centred = values - values.mean(axis=0)
    covariance = centred.T @ centred / len(values)
    return centred @ np.linalg.inv(covariance + 1e-3 * np.eye(covariance.shape[0]))


def step(model, optimizer, features):
    primes = sieve(200000)
    chain = longest(300)
    white = whiten(features)
    batch = torch.from_numpy(white).float()
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return primes + chain + loss.item()


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(96, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    features = np.random.default_rng(0).normal(size=(1500, 96))
    while True:
        step(model, optimizer, features)


run()
