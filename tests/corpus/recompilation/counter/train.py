import torch
from nets import Net

net = Net()
net.compile()  #> site compile mode=default
for x in loader:
    net(x).sum().backward()  #> cost device_ms=20
