#> device count=8
import torch.nn as nn


class Runner:
    def __init__(self, model):
        self.model = nn.DataParallel(model)  #> found; site parallel type=DataParallel

    def go(self, batches):
        for b in batches:
            self.model(b).mean().backward()  #> cost device_ms=30 idle_ms=44 communication_ms=10 step_ms=80
