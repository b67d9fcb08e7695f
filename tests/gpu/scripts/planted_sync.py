"""A step that waits for the device and then sleeps 8 ms: the device is idle because of both lines."""

import time

import torch

large = torch.randn(8192, 8192, device="cuda")
weight = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=1e-3)
for step in range(2000):
    loss = (weight * (large @ large).mean()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()  # waits
    time.sleep(0.008)  # planted: 8
