import torch

@torch.compile  #> found; site compile mode=default
def step(x):
    return (x @ x.mT).softmax(-1)  #> cost step_ms=4 device_ms=4

for length in lengths:
    step(make(length))
    #^ cost step_ms=12 cpu_ms=12; event recompile count=7 milliseconds=30000 reason="tensor 'x' size mismatch at index 1"
