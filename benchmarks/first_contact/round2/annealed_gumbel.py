import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch._dynamo.config.recompile_limit = 256
device = "cuda" if torch.cuda.is_available() else "cpu"


class Quantizer(nn.Module):
    def __init__(self, d, codes):
        super().__init__()
        self.to_codes = nn.Linear(d, codes)
        self.book = nn.Linear(codes, d, bias=False)
        self.temperature = 2.0  # flaw: recompilation

    def forward(self, x):
        p = F.softmax(self.to_codes(x) / self.temperature, dim=-1)  # flaw: recompilation
        return self.book(p)


class AutoEncoder(nn.Module):
    def __init__(self, n=256, d=1024, codes=2048):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n, d), nn.GELU(), nn.Linear(d, d), nn.GELU())
        self.q = Quantizer(d, codes)
        self.dec = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, n))

    def forward(self, x):
        return self.dec(self.q(self.enc(x)))


model = AutoEncoder().to(device)
compiled = torch.compile(model, dynamic=False)  # flaw: recompilation
opt = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
batch = 8192
x = torch.randn(batch, 256, device=device)

for it in range(400):
    model.q.temperature = max(0.3, 2.0 * math.exp(-0.004 * it))  # flaw: recompilation
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.mse_loss(compiled(x).float(), x)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(it, loss.item())
