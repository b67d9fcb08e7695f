"""An image's channels go last for a small network, and back by a copy before a sum."""

import torch
from torch import nn


class Mix(nn.Module):
    def forward(self, x):
        y = self.down(torch.relu(self.up(x.movedim(1, -1))))
        #^ cost step_ms=20 device_ms=20 forward_ms=20
        #^ node aten.mm.default args=[%20,%21] shape=[8,64,64,256] function=Mix.forward
        y = y.permute(0, 3, 1, 2).contiguous()
        #^ found; cost step_ms=3 device_ms=3 forward_ms=3
        #^ node aten.permute.default args=[%0,[0,3,1,2]] shape=[8,256,64,64] function=Mix.forward
        #^ node aten.clone.default args=[%1,'{"memory_format":0}'] shape=[8,256,64,64] function=Mix.forward
        return y * self.gain + x
        #^ cost step_ms=3 device_ms=3 forward_ms=3
        #^ node aten.mul.Tensor args=[%2,%22] shape=[8,256,64,64] function=Mix.forward
