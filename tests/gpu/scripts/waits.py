"""Planted delays of known length: 20 ms of host time at one line, a wait for the device at another."""

import time

import torch

large = torch.randn(4096, 4096, device="cuda")
weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for step in range(1000):
    begun = time.perf_counter()
    # The one line works for 20 ms without a function of its own.
    any(time.perf_counter() > begun + 0.020 for _ in iter(int, 1))  # planted: 20
    loss = (weight * (large @ large).mean()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()  # waits
