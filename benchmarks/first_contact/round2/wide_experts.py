"""Hashed routing: each block of a batch goes to one of a few large experts."""
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = "cuda" if torch.cuda.is_available() else "cpu"
E, D, H = 8, 2048, 8192


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.ModuleList([nn.Linear(D, H, bias=False) for _ in range(E)])
        self.w2 = nn.ModuleList([nn.Linear(H, D, bias=False) for _ in range(E)])

    def forward(self, x):
        parts = x.chunk(E)
        return torch.cat([b(F.gelu(a(p))) for a, b, p in zip(self.w1, self.w2, parts)])


model = nn.Sequential(nn.Linear(256, D), Experts(), nn.Linear(D, 64)).to(dev)
opt = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
tokens = 4096 if dev == "cuda" else 64
x = torch.randn(2, tokens, 256, device=dev)
y = torch.randint(0, 64, (2, tokens), device=dev)

for i in range(500):
    opt.zero_grad(set_to_none=False)  # flaw: zeroed-gradients
    with torch.autocast(dev, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x[i % 2]), y[i % 2])
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item())
