"""A deep narrow network for a table: many small parameters, Adam one by one, its own mish."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
torch.set_num_threads(1)


def mish(x):
    return x * torch.tanh(F.softplus(x))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(40)])
        self.last = nn.Linear(64, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + mish(layer(x))
        return self.last(x)


net = Tower()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
table, target = torch.randn(4096, 64), torch.randn(4096, 1)
for step in range(5000):
    rows = torch.randint(4096, (32,))
    loss = ((net(table[rows]) - target[rows]) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
