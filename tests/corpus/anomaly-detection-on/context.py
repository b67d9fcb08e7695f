#> flags anomaly_mode=true
from torch import autograd, nn

net = nn.Sequential(*[nn.Linear(64, 64) for _ in range(50)])
with autograd.detect_anomaly():  #> found
    for x in data:
        y = net(x)  #> cost device_ms=6 cpu_ms=30
        #^ op aten::isnan phase=backward count=200 cpu_ms=6; op aten::item phase=backward count=200 cpu_ms=2
        y.sum().backward()
