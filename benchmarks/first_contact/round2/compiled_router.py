"""Mixture of experts with a compiled block."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stats:
    seen = 0
    load = 0.0


class Gate(nn.Module):
    def __init__(self, d, e):
        super().__init__()
        self.w = nn.Linear(d, e, bias=False)

    def forward(self, x):
        p = self.w(x).float().softmax(-1)
        Stats.load = 0.9 * Stats.load + 0.1 * p.max(-1).values.mean().item()  # flaw: graph-break|sync-in-step|recompilation
        return p


class SoftMoE(nn.Module):
    def __init__(self, d=768, e=4):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(d), Gate(d, e)
        self.up = nn.Parameter(torch.randn(e, d, d) * d ** -0.5)
        self.down = nn.Parameter(torch.randn(e, d, d) * d ** -0.5)

    def forward(self, x):
        h = self.norm(x)
        p = self.gate(h)
        y = torch.einsum("nd,edf->enf", h, self.up)
        y = torch.einsum("enf,efd->end", F.gelu(y), self.down)
        return x + torch.einsum("end,ne->nd", y, p)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.layers, self.out = nn.Linear(64, 768), nn.ModuleList(SoftMoE() for _ in range(4)), nn.Linear(768, 10)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


net = Net().to(device)
fast = torch.compile(net)
opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
batch = 4096
x, y = torch.randn(batch, 64, device=device), torch.randint(0, 10, (batch,), device=device)
for i in range(800):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(fast(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item(), Stats.load)
