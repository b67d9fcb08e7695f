#> manifest world_size=8
import torch

unused = True
dist_model = torch.nn.parallel.DistributedDataParallel(  #> found; site parallel type=DistributedDataParallel find_unused_parameters=true
    network, device_ids=[rank], find_unused_parameters=unused
)
for batch in batches:
    total = dist_model(batch).sum()  #> cost device_ms=16 idle_ms=7 step_ms=23
    total.backward()
