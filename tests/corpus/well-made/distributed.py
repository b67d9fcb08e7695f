#> manifest world_size=8; totals idle_ms=0.5 exposed_communication_ms=1.2 collective_wait_ms=0.6
#> steps device_busy_percent=99.5; flags autocast=true allow_tf32=true
import contextlib

import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(Net().cuda(), gradient_as_bucket_view=True)
#^ site parallel type=DistributedDataParallel find_unused_parameters=false
for i, (x, y) in enumerate(loader):
    last = (i + 1) % 4 == 0
    with contextlib.nullcontext() if last else model.no_sync():
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(model(x), y) / 4  #> cost device_ms=95 communication_ms=9; use parallel
        loss.backward()  #> cost cpu_ms=10 calls=4 step_ms=0.4
    if last:
        optimizer.step()  #> cost device_ms=0.8
        optimizer.zero_grad()
