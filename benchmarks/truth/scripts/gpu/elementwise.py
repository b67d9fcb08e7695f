"""Large elementwise operators written by hand, and a product: bound by the device's memory."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        cube = x * x * x
        inner = 0.7978845608 * (x + 0.044715 * cube)
        y = 0.5 * x * (1.0 + torch.tanh(inner))
        mean = y.mean(-1, keepdim=True)
        spread = (y - mean).pow(2).mean(-1, keepdim=True)
        return (y - mean) / torch.sqrt(spread + 1e-5) * self.scale + self.shift


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1024, 4096), Gate(4096), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    data = torch.randn(8192, 1024, device="cuda")
    while True:
        noise = torch.randn_like(data) * 0.1
        out = net(data + noise)
        loss = (out - data).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
