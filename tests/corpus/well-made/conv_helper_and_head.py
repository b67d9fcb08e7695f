#> steps step_ms=60
# One helper makes the block's convolution and the head's: only the first is followed by a norm.
import torch
from torch import nn


def conv(cin, cout, kernel):
    return nn.Conv2d(cin, cout, kernel, padding=kernel // 2)
    #^ site module type=Conv2d bias=true count=2 with.in_channels=3 with.out_channels=64 with.kernel_size=3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"conv": conv(3, 64, 3), "norm": nn.BatchNorm2d(64), "head": conv(64, 64, 1)})

    def forward(self, x):
        x = torch.relu(self.layers["norm"](self.layers["conv"](x)))
        #^ cost step_ms=40 device_ms=40 backward_ms=25
        #^ op aten::add_ device_ms=3 outer=false shapes=[[32,64,56,56],[1,64,1,1]]
        #^ op aten::sum device_ms=2 phase=backward shapes=[[32,64,56,56]]
        #^ node aten.convolution.default args=[%20,%21,%22,[1,1],[1,1],[1,1],False,[0,0],1] shape=[32,64,56,56]
        #^ node aten.native_batch_norm.default args=[%0,%23,%24,%25,%26,True,0.1,1e-5] shape=[32,64,56,56]
        #^ node aten.relu.default args=[%1] shape=[32,64,56,56]
        return self.layers["head"](x)
        #^ cost step_ms=9 device_ms=9
        #^ node aten.convolution.default args=[%2,%27,%28,[1,1],[0,0],[1,1],False,[0,0],1] shape=[32,64,56,56]


#> tensor %20 shape=[32,3,56,56]; tensor %21 shape=[64,3,3,3] parameter=true; tensor %22 shape=[64] parameter=true
#> tensor %23 shape=[64] parameter=true; tensor %24 shape=[64] parameter=true; tensor %25 shape=[64]
#> tensor %26 shape=[64]; tensor %27 shape=[64,64,1,1] parameter=true; tensor %28 shape=[64] parameter=true
net = Net()
for images in loader:
    net(images).mean().backward()
