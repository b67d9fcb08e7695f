from torch import nn

class Net(nn.Module):
    calls = 0  #> found

    def forward(self, x):
        self.calls += 1
        return self.body(x) * self.calls  #> cost device_ms=20
        #^ event recompile count=8 milliseconds=12000 reason="self.calls == 3"
