# corpus: run, may per-tensor-optimizer launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step
import torch
from torch.nn import Linear, Module, Parameter

class Norm(Module):
    def __init__(self, n):
        super().__init__()
        self.g = Parameter(torch.ones(n))
        self.b = Parameter(torch.zeros(n))

    def forward(self, inputs):
        centre = inputs.mean(dim=-1, keepdim=True)
        spread = inputs.var(dim=-1, unbiased=False, keepdim=True)
        return (inputs - centre) * torch.rsqrt(spread + 1e-6) * self.g + self.b  #> found

class Net(Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.head = Linear(64, 512), Norm(512), Linear(512, 4)

    def forward(self, x):
        return self.head(self.norm(self.inner(x)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(1024, 64), torch.randint(0, 4, (1024,))
for _ in range(3000):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
