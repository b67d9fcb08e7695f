#> totals idle_ms=4
import torch


def step(x, debug=True):
    y = net(x)  #> cost device_ms=12 idle_ms=4 step_ms=16
    if debug:
        torch.cuda.current_stream().synchronize()  #> found; cost cpu_ms=9 sync_ms=9 step_ms=0.1
    return y
