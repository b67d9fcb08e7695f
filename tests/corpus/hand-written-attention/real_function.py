# corpus: run, may per-tensor-optimizer launch-bound small-batch unfused-elementwise slow-sample-line gc-pause-in-step
import math
import torch
from torch import softmax

def attend(query, key, value):
    d_k = query.size(-1)
    logits = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    probabilities = softmax(logits, dim=-1)
    return torch.matmul(probabilities, value)  #> found

q = torch.nn.Parameter(torch.randn(4, 4, 256, 32))
k, v = torch.randn(4, 4, 256, 32), torch.randn(4, 4, 256, 32)
optimizer = torch.optim.SGD([q], lr=0.1)
for _ in range(3000):
    loss = attend(q, k, v).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
