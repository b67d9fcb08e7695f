"""A compiled block; only its line makes sine kernels, only the loss makes the absolute value's."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(512, 2048)
        self.down = nn.Linear(2048, 512)

    def forward(self, x):
        h = torch.sin(self.up(x))  # kernel: sin
        return self.down(h)


model = nn.Sequential(*(Block() for _ in range(4))).cuda()
compiled = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(256, 512, device="cuda")
for step in range(2000):
    loss = compiled(x).abs().mean()  # kernel: abs
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
