#> manifest world_size=16; totals exposed_communication_ms=6
from torch.nn.parallel import DistributedDataParallel as DDP

student = DDP(build_student())  #> found; site parallel type=DistributedDataParallel
for x in batches:
    loss = distill(student(x), teacher(x))  #> cost device_ms=24 communication_ms=11
    loss.backward()
    optimizer.step()
