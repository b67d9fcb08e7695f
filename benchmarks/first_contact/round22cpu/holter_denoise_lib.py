"""Blocks for one-dimensional biosignals."""
import torch
from torch import nn


def spread(groups, floor):
    """Mean and inverse deviation of each group."""
    centre = groups.mean(dim=(2, 3), keepdim=True)  # flaw: hand-written-norm
    power = (groups * groups).mean(dim=(2, 3), keepdim=True) - centre * centre  # flaw: hand-written-norm
    return centre, (power + floor).rsqrt()  # flaw: hand-written-norm


class LeadNorm(nn.Module):
    """Leads differ in gain: each group of channels is brought to one scale per record."""

    def __init__(self, channels, groups=4, floor=1e-5):
        super().__init__()
        self.groups, self.floor = groups, floor
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        rows, channels, length = x.shape  # flaw: hand-written-norm
        parts = x.view(rows, self.groups, channels // self.groups, length)  # flaw: hand-written-norm
        centre, scale = spread(parts, self.floor)  # flaw: hand-written-norm
        even = ((parts - centre) * scale).view(rows, channels, length)  # flaw: hand-written-norm
        return even * self.gain[:, None] + self.shift[:, None]  # flaw: hand-written-norm


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.norm = LeadNorm(channels)
        self.act = nn.SiLU()
        self.mix = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)

    def forward(self, x):
        return x + self.mix(self.act(self.norm(x)))


def denoiser(channels=32, depth=5):
    return nn.Sequential(
        nn.Conv1d(3, channels, 9, padding=4),
        *(Residual(channels, 2**k) for k in range(depth)),
        LeadNorm(channels),
        nn.Conv1d(channels, 3, 9, padding=4),
    )
