#> flags anomaly_mode=true
from torch import autograd, nn

net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(50)])
with autograd.detect_anomaly():  #> found
    for x in data:
        y = net(x)  #> cost device_ms=6 cpu_ms=30 check_ms=8 traceback_ms=12
        y.sum().backward()
