"""Predicts the vigour of bonsai from a year of care measurements that fit in memory."""
import os
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Plan:
    trees: int = 6144
    rows: int = 1024
    width: int = 512
    epochs: int = 20


plan = Plan(256, 64, 32, 1) if os.environ.get("TINY") == "1" else Plan()
torch.manual_seed(1)
care = torch.randn(plan.trees, 60)
vigour = care[:, :20].relu().mean(1) - care[:, 20:40].abs().mean(1)
net = nn.Sequential(
    nn.Linear(60, plan.width), nn.SiLU(), nn.Linear(plan.width, plan.width), nn.SiLU(),
    nn.Linear(plan.width, plan.width), nn.SiLU(), nn.Linear(plan.width, 1), nn.Flatten(0),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
for epoch in range(plan.epochs):
    for rows in torch.randperm(plan.trees).split(plan.rows):
        loss = nn.functional.huber_loss(net(care[rows]), vigour[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(epoch, f"{loss.item():.4f}")
print("vigour", f"{loss.item():.4f}")
