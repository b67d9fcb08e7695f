import torch
from kernels import transposed

for x in batches:
    y = transposed(x)  #> cost cpu_ms=0.1
    loss = (y @ weight).sum()  #> cost device_ms=3
