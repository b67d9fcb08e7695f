"""A whole training step in one graph whose capture forks into a second stream; the optimizer is inside."""

import torch
from torch import nn
from torch.nn import functional as F

width, batch = 2048, 2048
left, right = nn.Linear(width, width).cuda(), nn.Linear(width, width).cuda()
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=1e-4)
x, y = torch.randn(batch, width, device="cuda"), torch.randn(batch, width, device="cuda")
side = torch.cuda.Stream()


def loss_of():
    here = torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        b = torch.erfinv(right(x).tanh() * 0.5)  # replayed: erfinv
    a = F.logsigmoid(left(x))  # replayed: log_sigmoid
    here.wait_stream(side)
    return F.mse_loss(a + b, y)


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(warm)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad()
with torch.cuda.graph(graph):
    loss = loss_of()
    loss.backward()
    optimizer.step()
for _ in range(20_000):
    graph.replay()
