"""One function with a section of each kind, one after the other."""

import time

import numpy as np
import torch
from torch import nn


def main():
    torch.manual_seed(0)
    big = torch.randn(1 << 20)
    left, right = torch.randn(384, 384), torch.randn(384, 384)
    table = np.random.rand(400, 400)
    head = nn.Linear(64, 8)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64), torch.randint(0, 8, (32,))
    for _ in range(100000):
        total = 0
        for i in range(60000):
            total += i * i
        squares = [i * i for i in range(50000)]
        spread = np.sort(table, axis=1).std(axis=0)
        small = torch.ones(4)
        for _ in range(400):
            small = small * 1.001
            small = small + 0.01
        smooth = nn.functional.gelu(big)
        scaled = smooth * 1.5
        product = left @ right
        time.sleep(0.003)
        peak = scaled.max().item()
        loss = nn.functional.cross_entropy(head(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return total, squares, spread, small, product, peak


if __name__ == "__main__":
    main()
