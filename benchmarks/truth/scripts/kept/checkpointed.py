"""A deep stack whose activations are computed again in backward."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = self.linear(x)
        y = torch.nn.functional.silu(y)
        return x + 0.1 * y


def main():
    layers = nn.ModuleList(Layer(256) for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-4)
    x = torch.randn(1024, 256)
    for _ in range(10**6):
        h = x
        for layer in layers:
            h = checkpoint(layer, h, use_reentrant=False)
        ranks = sorted(range(20000), key=lambda i: (i * 7919) % 20011)
        loss = h.square().mean() + ranks[0] * 0
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
