# corpus: run, may launch-bound
"""Data that fits is kept as one tensor and cut into batches without a loader."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(8192, 512)
y = torch.randint(0, 10, (8192,))
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
for epoch in range(40):
    for rows in torch.randperm(8192).split(1024):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
