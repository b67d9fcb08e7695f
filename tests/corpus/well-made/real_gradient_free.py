# corpus: run, may channels-first-conv
"""Kept losses are detached, sums are read once an epoch."""

import torch

torch.manual_seed(0)
model = torch.nn.Conv2d(16, 32, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
images = torch.randn(32, 16, 64, 64)
for epoch in range(20):
    losses = []
    for step in range(40):
        loss = model(images).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    print(epoch, torch.stack(losses).mean().item())
