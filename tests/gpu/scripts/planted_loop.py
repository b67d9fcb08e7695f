"""A Python loop that sleeps two milliseconds before each of five small kernels: 10 ms a step."""

import time

import torch

x = torch.randn(64, 64, device="cuda")
weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for step in range(2000):
    h = x * weight
    for _ in range(5):
        time.sleep(0.002)  # planted: 10
        h = torch.sin(h)  # only: aten::sin
    loss = h.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
