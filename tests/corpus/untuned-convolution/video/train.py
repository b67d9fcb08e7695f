#> flags cudnn_benchmark=false
"""Training on clips."""

import torch
from clips import Net

def train(net, clips):
    for clip in clips:
        net(clip).sum().backward()  #> cost cpu_ms=1

train(Net(), clips)
