#> manifest world_size=2; totals collective_wait_ms=30 late_rank=1 late_rank_ms=30
import torch.distributed as dist


def average(grads):
    for g in grads:
        dist.all_reduce(g)  #> found; cost device_ms=45 communication_ms=45


for texts in sampler:
    grads = backward(texts)  #> cost device_ms=60
    average(grads)
