"""Mixes sensor channels; layer norm in one line and SiLU by hand, Adagrad over many tensors."""

import torch
from torch import nn

torch.manual_seed(17)
torch.set_num_threads(1)


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.over, self.along = nn.Linear(16, 16), nn.Linear(width, width)

    def forward(self, x):
        n = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        n = n * self.weight + self.bias
        n = self.over(n.transpose(1, 2)).transpose(1, 2)
        h = self.along(n)
        return x + h * torch.sigmoid(h)


net = nn.Sequential(*[Mixer(128) for _ in range(8)], nn.Linear(128, 3))
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.01)
for step in range(3000):
    x = torch.randn(32, 16, 128)
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
