import math

import torch
from torch import nn


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 256

    def __getitem__(self, i):
        return torch.sin(torch.arange(64) * (0.1 + i / 100)), i % 5


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))
        self.shift = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)  #> cost device_ms=3; op aten::mean count=25 device_ms=3
        var = (x - mean).pow(2).mean(-1, keepdim=True)  #> cost device_ms=4; op aten::pow count=25 device_ms=4
        return self.gain * (x - mean) / torch.sqrt(var + 1e-6) + self.shift
        #^ found hand-written-norm; cost device_ms=4; op aten::mul count=25 device_ms=4


def gelu(x):
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
    #^ found hand-written-activation; cost device_ms=6; op aten::mul count=25 device_ms=6


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(64, 64), Norm(64), nn.Linear(64, 5)

    def forward(self, x):
        return self.last(gelu(self.norm(self.first(x))))  #> cost device_ms=3
