import torch.nn.functional as fn
from torch.nn import BatchNorm2d, Conv2d, Module

class Residual(Module):
    def __init__(self, width):
        super().__init__()
        self.c1 = Conv2d(width, width, 3, padding=1)  #> found
        self.b1 = BatchNorm2d(width)
        self.c2 = Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        y = fn.relu(self.b1(self.c1(x)))  #> cost device_ms=9; op aten::convolution device_ms=5
        #^ op aten::add_ device_ms=1.5 outer=false shapes=[[16,64,56,56],[1,64,1,1]]
        return x + self.c2(y)  #> cost device_ms=6; op aten::convolution device_ms=5
