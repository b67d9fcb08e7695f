import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["ResidualStack", "standardize"]


def standardize(x, gain, shift, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, shift, eps)


class Scaled(nn.Module):
    """Owns the gain and the shift of one standardisation."""

    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))
        self.shift = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return standardize(x, self.gain, self.shift)


class ResidualUnit(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.scaled = Scaled(width)
        self.grow = nn.Linear(width, hidden)
        self.shrink = nn.Linear(hidden, width)
        nn.init.zeros_(self.shrink.bias)
        with torch.no_grad():
            self.shrink.weight.mul_(0.5)

    def forward(self, x):
        return x + self.shrink(F.gelu(self.grow(self.scaled(x))))


class ResidualStack(nn.Module):
    def __init__(self, inputs, width, hidden, depth, outputs):
        super().__init__()
        self.entry = nn.Linear(inputs, width)
        self.units = nn.ModuleList(ResidualUnit(width, hidden) for _ in range(depth))
        self.last = Scaled(width)
        self.exit = nn.Linear(width, outputs)

    def forward(self, x):
        x = self.entry(x).float()
        for unit in self.units:
            x = unit(x)
        return self.exit(self.last(x))
