import torch
from torch import nn

class ChannelNorm(nn.Module):
    """As in ConvNeXt: over the channels of an image."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)  #> cost device_ms=2; op aten::mean device_ms=2 shapes=[[32,96,56,56]]
        s = (x - u).pow(2).mean(1, keepdim=True)  #> cost device_ms=4
        x = (x - u) / torch.sqrt(s + self.eps)  #> found; cost device_ms=4
        return self.weight[:, None, None] * x + self.bias[:, None, None]  #> cost device_ms=1
