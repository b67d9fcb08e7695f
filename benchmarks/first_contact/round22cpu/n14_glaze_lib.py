"""Layers that learn a curve for each pair of an input and an output."""
import torch
from torch import nn
from torch.nn import functional as F


class Bumps(nn.Module):
    """Gaussian bumps at even distances in place of B-splines."""

    def __init__(self, count, low=-1.5, high=1.5):
        super().__init__()
        self.register_buffer("centres", torch.linspace(low, high, count))
        self.narrow = (count - 1) / (high - low)

    def forward(self, x):
        return ((x.unsqueeze(-1) - self.centres) * self.narrow).square().neg().exp()


class SplineLayer(nn.Module):
    def __init__(self, inputs, outputs, knots=8):
        super().__init__()
        self.bumps = Bumps(knots)
        self.straight = nn.Linear(inputs, outputs)
        self.curves = nn.Parameter(torch.randn(inputs, knots, outputs) / (inputs * knots) ** 0.5)

    def combine(self, basis):
        """basis: (rows, inputs, knots)"""
        terms = []
        for i in range(basis.shape[1]):  # flaw: python-loop-over-tensor
            terms.append(basis[:, i] @ self.curves[i])  # flaw: python-loop-over-tensor
        return torch.stack(terms).sum(0)  # flaw: python-loop-over-tensor

    def forward(self, x):
        return self.straight(F.silu(x)) + self.combine(self.bumps(x))


class SplineNet(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(SplineLayer(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
