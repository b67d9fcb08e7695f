#> totals idle_ms=5
import torch

while training:
    loss = objective()  #> cost device_ms=10 idle_ms=5 step_ms=15
    if torch.isnan(loss):  #> found; cost cpu_ms=8 sync_ms=8 step_ms=0.1
        raise RuntimeError("diverged")
    loss.backward()
