from torch import nn
import torch.nn.functional as fn

class Mish(nn.Module):
    def forward(self, inp):
        soft = fn.softplus(inp)  #> cost device_ms=2
        squashed = soft.tanh()  #> cost device_ms=2
        return inp.mul(squashed)  #> found; cost device_ms=2

ACTIVATIONS = {"mish": Mish}
