import torch

class Runner:
    def fit(self):
        for x in self.data:
            self.optimizer.zero_grad(False)  #> found; cost device_ms=2; op aten::_foreach_zero_ count=4 device_ms=2
            self.loss(x).backward()  #> cost device_ms=30
            self.optimizer.step()  #> cost device_ms=3
