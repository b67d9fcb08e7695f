#> manifest world_size=8
from torch.distributed.fsdp import FullyShardedDataParallel


def shard(model):
    return FullyShardedDataParallel(model)  #> found; site parallel type=FSDP


model = shard(Model())
for tokens in stream:
    model(tokens).backward()  #> cost device_ms=90 communication_ms=35 step_ms=90
    optimizer.step()
