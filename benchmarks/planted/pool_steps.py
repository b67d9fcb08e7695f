"""Steps that the threads of a pool take in turn, while the main thread waits for each."""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

net = nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)


def step(batch):
    loss = net(batch).square().mean()
    time.sleep(0.012)  # = 12
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


with ThreadPoolExecutor(4) as pool:
    while True:
        time.sleep(0.008)  # = 8
        pool.submit(step, torch.randn(8, 16)).result()
