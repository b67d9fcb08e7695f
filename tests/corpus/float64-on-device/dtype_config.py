import torch
from torch import float32

CONFIG = {"dtype": torch.float64, "device": "cuda"}  #> found

def make(size):
    return torch.randn(size, size, **CONFIG)

weights = make(1024)
for step in range(100):
    weights = torch.linalg.matmul(weights, weights)
    #^ cost device_ms=20; op aten::mm device_ms=20 dtypes=double,double
    total = weights.to(float32).mean()  #> cost device_ms=1
