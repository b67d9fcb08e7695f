#> manifest world_size=4; totals exposed_communication_ms=18
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, opt, every):
    net = DDP(net, gradient_as_bucket_view=True)  #> site parallel type=DistributedDataParallel
    for n, (x, y) in enumerate(batches, 1):
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(x), y)  #> cost device_ms=70 communication_ms=30
        (loss / every).backward()  #> found; cost cpu_ms=4 calls=8
        if n % every == 0:
            opt.step()  #> cost device_ms=2
            opt.zero_grad()
