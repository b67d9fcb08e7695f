# corpus: run, may per-tensor-optimizer launch-bound small-batch unfused-elementwise
import torch

DEBUG = True  #> found
torch.autograd.set_detect_anomaly(DEBUG)

layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(24))
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
x = torch.randn(64, 64)
for _ in range(4000):
    h = x
    for layer in layers:
        h = layer(h)
    loss = h.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
