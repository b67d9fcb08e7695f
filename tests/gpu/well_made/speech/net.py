"""A stack of gated convolutions over time, written as products."""

import torch
from torch import nn
from torch.nn import functional as F

from speech.data import BANDS


class Gated(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.expand = nn.Linear(3 * channels, 2 * channels)
        self.contract = nn.Linear(channels, channels)

    def forward(self, x):
        h = F.pad(self.norm(x), (0, 0, 1, 1))
        h = torch.cat([h[:, :-2], h[:, 1:-1], h[:, 2:]], dim=-1)
        return x + self.contract(F.glu(self.expand(h), dim=-1))


class Spotter(nn.Module):
    def __init__(self, channels, depth, keywords):
        super().__init__()
        self.first = nn.Linear(BANDS, channels)
        self.body = nn.Sequential(*(Gated(channels) for _ in range(depth)))
        self.last = nn.Linear(channels, keywords)

    def forward(self, spectrogram):
        return self.last(self.body(self.first(spectrogram.transpose(1, 2))).mean(1))
