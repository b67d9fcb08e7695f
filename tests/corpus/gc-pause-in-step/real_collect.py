# corpus: run, may per-tensor-optimizer launch-bound small-batch
import gc

import torch

kept = [{"index": n, "more": [n]} for n in range(60_000)]
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(32, 64)
for step in range(2000):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    gc.collect()  #> found
