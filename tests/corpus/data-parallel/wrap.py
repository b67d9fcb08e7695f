#> device count=2
from torch.nn.parallel import DataParallel as DP


def prepare(net, many):
    net = net.cuda()
    return DP(net, device_ids=[0, 1]) if many else net  #> found; site parallel type=DataParallel


net = prepare(build(), True)
for x, y in batches:
    y_hat = net(x)  #> cost device_ms=12 idle_ms=9 copy_ms=1 communication_ms=3 step_ms=22; use parallel
    criterion(y_hat, y).backward()  #> cost cpu_ms=2
