#> manifest world_size=2
from torch.nn import parallel

OPTIONS = {"find_unused_parameters": True, "broadcast_buffers": False}


def wrap(net):
    return parallel.DistributedDataParallel(net, **OPTIONS)
    #^ found; site parallel type=DistributedDataParallel find_unused_parameters=true


net = wrap(make())
for batch in batches:
    out = net(batch)  #> cost device_ms=10 idle_ms=3 step_ms=13; use parallel
