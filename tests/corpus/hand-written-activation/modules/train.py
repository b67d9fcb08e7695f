import torch
from acts import ACTIVATIONS

act = ACTIVATIONS["mish"]()
for x in batches:
    y = act(x)  #> cost cpu_ms=0.3
    y.mean().backward()  #> cost device_ms=4
