"""Planted delays of known length: 20 ms of host time at one line, a wait for the device at another."""

import time

import torch

large = torch.randn(4096, 4096, device="cuda")
weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for step in range(300):
    until = time.perf_counter() + 0.020
    while time.perf_counter() < until:
        pass  # planted
    loss = (weight * (large @ large).mean()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()  # waits
