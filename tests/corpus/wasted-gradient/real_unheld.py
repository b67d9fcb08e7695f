# corpus: run, may launch-bound small-batch gc-pause-in-step unfused-elementwise hand-written-loss
import torch

torch.manual_seed(0)


class Distiller(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.big = torch.nn.Sequential(*(torch.nn.Linear(384, 384) for _ in range(6)))  #> found
        self.small = torch.nn.Sequential(*(torch.nn.Linear(384, 384) for _ in range(2)))

    def forward(self, x):
        wanted = self.big(x)
        return (self.small(x) - wanted).square().mean()


net = Distiller()
optimizer = torch.optim.SGD(net.small.parameters(), lr=0.01)
x = torch.randn(64, 384)
for step in range(3000):
    loss = net(x)
    net.zero_grad()
    loss.backward()
    optimizer.step()
