import torch
from routing import route

step = torch.compile(route)  #> site compile mode=default
for x in batches:
    step(x)  #> cost cpu_ms=0.3
