import torch
from torch import full


def causal(size, like):
    empty = full((size, size), float("-inf")).to(like.device, dtype=like.dtype)
    #^ found; cost cpu_ms=5 idle_ms=4 copy_ms=1 device_ms=1 step_ms=5; site tensor device=cpu to=cuda:0 op=full bytes=16777216
    return torch.triu(empty, 1)  #> cost device_ms=0.5


def attend(q, k, v):
    return softmax(q @ k.mT + causal(q.shape[-2], q)) @ v  #> cost device_ms=20
