#> device kind=cpu name=CPU capability=None multiprocessors=0; manifest world_size=2
"""Gloo on CPUs: the exchange shows as time in which nothing runs at the backward pass."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ACCUMULATE = 4


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(512, 512))  #> site parallel type=DistributedDataParallel
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
    for i in range(4000):
        x = torch.randn(32, 512)
        loss = net(x).square().mean() / ACCUMULATE  #> cost device_ms=120 forward_ms=20 backward_ms=100 step_ms=120
        loss.backward()  #> found; cost cpu_ms=180 idle_ms=180 calls=4
        if (i + 1) % ACCUMULATE == 0:
            sgd.step()
            sgd.zero_grad()


main()
