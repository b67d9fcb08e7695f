"""A window of distances that each layer computes from its length."""

import torch
from torch import nn


class Retention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.proj(x).chunk(3, -1)
        #^ cost step_ms=8 device_ms=8 forward_ms=8
        #^ node aten.mm.default args=[%20,%21] shape=[8192,3072] function=Retention.forward
        steps = torch.arange(x.shape[1], device=x.device)
        gap = (steps[:, None] - steps).clamp(min=0).float()
        #^ cost step_ms=1 device_ms=1 forward_ms=1
        #^ node aten.arange.default args=[4096] shape=[4096] function=Retention.forward
        #^ node aten.sub.Tensor args=[%1,%1] shape=[4096,4096] function=Retention.forward
        window = torch.exp(gap * -0.03).tril()
        #^ found; cost step_ms=3 device_ms=3 forward_ms=3
        #^ node aten.exp.default args=[%2] shape=[4096,4096] function=Retention.forward
        #^ node aten.tril.default args=[%3] shape=[4096,4096] function=Retention.forward
        return (q @ k.mT * window) @ v
        #^ cost step_ms=20 device_ms=20 forward_ms=20
        #^ node aten.mul.Tensor args=[%22,%4] shape=[2,4096,4096] function=Retention.forward
