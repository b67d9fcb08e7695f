from torch.nn import Linear, Module, ModuleList

class Deep(Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = ModuleList(Linear(32, 32) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).relu()
            #^ cost step_ms=45 device_ms=15 idle_ms=30 cpu_ms=45 launches=1000
        return x

def make_net(depth):
    return Deep(depth)
