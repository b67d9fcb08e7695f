import torch

SQRT_2 = 1.4142135623730951

@torch.jit.ignore
def bias_gelu(bias, y):
    x = bias + y  #> cost device_ms=2
    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))  #> found; cost device_ms=6

def mlp(x, w, b):
    return bias_gelu(b, x @ w)  #> cost device_ms=9
