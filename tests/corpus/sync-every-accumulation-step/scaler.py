#> manifest world_size=8; totals exposed_communication_ms=9
import torch

scaler = torch.amp.GradScaler("cuda")
ddp = torch.nn.parallel.DistributedDataParallel(Net().cuda())  #> site parallel type=DistributedDataParallel
pending = 0
while more():
    loss = ddp(next_batch()) * 0.5  #> cost device_ms=40 communication_ms=12
    scaler.scale(loss).backward()  #> found; cost cpu_ms=2 calls=2
    pending += 1
    if pending == 2:
        scaler.step(optimizer)
        pending = 0
