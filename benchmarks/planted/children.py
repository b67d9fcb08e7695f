"""Samples made by a pool of processes, and a process that writes what the training sends it."""

import multiprocessing
import time

import torch
from torch import nn


def sample(number):
    time.sleep(0.012)
    return [float(number % 5)] * 16


def write(queue):
    while queue.get() is not None:
        time.sleep(0.001)


def main():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    writer = context.Process(target=write, args=(queue,), daemon=True)
    writer.start()
    net = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    with context.Pool(2) as pool:
        for at in range(100000):
            rows = pool.map(sample, range(at, at + 2), chunksize=1)  # = 12
            loss = net(torch.tensor(rows)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.005)  # = 5
            queue.put(float(loss))


if __name__ == "__main__":
    main()
