"""A part of a model made into graphs by torch.cuda.make_graphed_callables; the rest trains eagerly."""

import torch
from torch import nn
from torch.nn import functional as F


class Trunk(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        x = torch.sinc(self.first(x))  # replayed: sinc
        return F.softplus(self.second(x))  # replayed: softplus


width, batch = 2048, 1024
trunk = Trunk(width).cuda()
head = nn.Linear(width, 10).cuda()
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=1e-3)
x = torch.randn(batch, width, device="cuda")
y = torch.randint(10, (batch,), device="cuda")
trunk = torch.cuda.make_graphed_callables(trunk, (torch.randn_like(x, requires_grad=True),))
for _ in range(600):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(head(trunk(x)), y)
    loss.backward()
    optimizer.step()
