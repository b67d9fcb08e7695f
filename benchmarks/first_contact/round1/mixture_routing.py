"""A mixture of experts, routed by a learned gate."""
import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, dim, hidden, count):
        super().__init__()
        self.gate = nn.Linear(dim, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(count)
        )

    def forward(self, x):
        weight, choice = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = torch.nonzero(choice == e, as_tuple=True)[0]  # flaw: sync-in-step
            if rows.numel():
                out.index_add_(0, rows, (expert(x[rows]) * weight[rows, None]).to(out.dtype))
        return x + out


class Model(nn.Module):
    def __init__(self, dim=512, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(Experts(dim, 2 * dim, 16) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.top = nn.Linear(dim, 256)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.top(self.norm(x))


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Model().to(device)
opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
tokens = torch.randn(8, 8192, 512, device=device)
following = torch.randint(256, (8, 8192), device=device)
for i in range(320):
    with torch.autocast(device, torch.bfloat16):
        loss = F.cross_entropy(model(tokens[i % 8]), following[i % 8])
    opt.zero_grad()
    loss.backward()
    opt.step()
