#> totals idle_ms=0.6; steps device_busy_percent=99.4; flags autocast=true
"""Synchronises and empties the cache, but once an epoch."""

import gc
import time

import torch

for epoch in range(100):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for x, y in batches:
        loss = update(x, y)  #> cost device_ms=120 idle_ms=0.6 step_ms=120
    torch.cuda.synchronize()
    print(epoch, loss.item(), time.perf_counter() - start)
    gc.collect()
    torch.cuda.empty_cache()
