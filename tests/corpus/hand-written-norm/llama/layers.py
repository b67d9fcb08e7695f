import torch
import torch.nn as nn

class RMSNorm(nn.Module):
    """Root mean square normalisation."""

    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        #^ cost device_ms=9; op aten::pow device_ms=3; op aten::mul device_ms=4

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)  #> cost device_ms=3
        return output * self.weight  #> found; cost device_ms=2

NORMS = {"rms": RMSNorm}

def build_norm(config):
    config = dict(config)
    return NORMS[config.pop("kind")](**config)
