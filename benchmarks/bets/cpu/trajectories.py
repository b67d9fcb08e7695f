"""Rolls a dynamics model out and joins the states one by one; a written-out loss."""

import torch
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(48, 96), nn.Tanh(), nn.Linear(96, 48))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
goal = torch.randn(256, 60, 48)
for step in range(5000):
    state = torch.randn(256, 48)
    path = state.unsqueeze(1)
    for at in range(59):
        state = state + 0.1 * model(state)
        path = torch.cat([path, state.unsqueeze(1)], dim=1)
    loss = ((path - goal) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
