#> device name="NVIDIA A100" capability=(8,0) multiprocessors=108; flags float32_matmul_precision=highest
from torch import nn, optim
import torch.nn.functional as fn

def forward(params, x):
    for w, b in params:
        x = fn.relu(fn.linear(x, w, b))
        #^ cost device_ms=30; op aten::addmm count=8 device_ms=28 dtypes=float,float,float
        #^ kernel ampere_sgemm_128x64_tn count=8 device_ms=28 tensor_cores=false
    return x

def run(params, batches, lr):
    opt = optim.SGD([t for pair in params for t in pair], lr=lr)
    for x, y in batches:
        opt.zero_grad()
        loss = fn.cross_entropy(forward(params, x), y)  #> found; cost device_ms=1
        loss.backward()
        opt.step()  #> cost device_ms=2
