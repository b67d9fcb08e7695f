# corpus: run, may launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step
from torch import nn, optim, randn

net = nn.Sequential(*(nn.Linear(128, 128) for _ in range(32)))
opt = optim.AdamW(net.parameters(), lr=1e-4)  #> found
data = randn(16, 128)
for _ in range(4000):
    opt.zero_grad()
    net(data).square().mean().backward()
    opt.step()
