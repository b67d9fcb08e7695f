"""A training step replayed from a CUDA graph, as torch's notes on them write it; the loss is read eagerly.

The optimizer steps inside the graph, so that its replays are the steps.
"""

import torch
from torch import nn

WIDTH, BATCH = 4096, 2048
model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(BATCH, WIDTH, device="cuda")
static_x, static_y = torch.empty_like(x), torch.randn_like(x)

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(static_x.zero_()), static_y).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad()
with torch.cuda.graph(graph):
    static_loss = nn.functional.mse_loss(model(static_x), static_y)
    static_loss.backward()
    optimizer.step()

best = float("inf")
for _ in range(2000):
    static_x.copy_(torch.special.i0(x))  # only: aten::special_i0
    graph.replay()
    best = min(best, static_loss.item())  # waits
