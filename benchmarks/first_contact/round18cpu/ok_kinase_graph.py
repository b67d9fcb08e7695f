# Well made: message passing over residue contacts, edges grouped once, one index_add for each layer.
import os
import sys
import time

import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"
residues, contacts, width, steps = (50, 200, 16, 4) if tiny else (3000, 24000, 96, 100)


class Contact(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(width, width)
        self.update = nn.GRUCell(width, width)

    def forward(self, x, src, dst, scale):
        sent = torch.relu(self.message(x))
        got = torch.zeros_like(x).index_add_(0, dst, sent.index_select(0, src))
        return self.update(got * scale, x)


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(20, width)
        self.layers = nn.ModuleList(Contact(width) for _ in range(2))
        self.head = nn.Linear(width, 3)

    def forward(self, x, *edges):
        x = torch.relu(self.stem(x))
        for layer in self.layers:
            x = layer(x, *edges)
        return self.head(x)


torch.manual_seed(5)
src = torch.randint(residues, (contacts,))
dst = torch.randint(residues, (contacts,)).sort().values
scale = torch.bincount(dst, minlength=residues).clamp_min(1).rsqrt()[:, None]
net = Graph()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
gen = torch.Generator().manual_seed(0)
began = time.perf_counter()
for step in range(steps):
    kinds = torch.randint(20, (residues,), generator=gen)
    x = nn.functional.one_hot(kinds, 20).float()
    loss = nn.functional.cross_entropy(net(x, src, dst, scale), kinds % 3)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{(time.perf_counter() - began) / steps * 1e3:.1f} ms", file=sys.stderr)
print(f"loss {loss.item():.4f}")
