"""Blocks for one-dimensional biosignals."""
import torch
from torch import nn


class LeadNorm(nn.Module):
    """Leads differ in gain: each group of channels is brought to one scale per record."""

    def __init__(self, channels, groups=4, floor=1e-5):
        super().__init__()
        self.groups, self.floor = groups, floor
        self.gain = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return nn.functional.group_norm(x, self.groups, self.gain, self.shift, self.floor)


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
