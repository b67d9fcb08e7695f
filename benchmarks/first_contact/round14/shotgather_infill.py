"""Infilling of dead geophone traces in shot gathers with a patch transformer."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")


class ShotVault:
    """All gathers of the survey in memory; windows are runs of neighbouring shots."""

    def __init__(self, shots, traces, samples, seed=3):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 1, samples, dtype=np.float32)
        chirps = np.stack([np.sin(2 * np.pi * f * t) for f in rng.uniform(5, 60, 32)]).astype(np.float32)
        gathers = np.empty((shots, traces, samples), np.float32)
        for s in range(shots):
            gathers[s] = chirps[rng.integers(0, 32, traces)]
        self.gathers = torch.from_numpy(gathers)  # flaw: pageable-host-copy
        self.order = rng

    def __len__(self):
        return self.gathers.shape[0]

    def windows(self, size, number):
        for _ in range(number):
            first = int(self.order.integers(0, len(self) - size + 1))
            yield self.gathers[first : first + size].to(dev, non_blocking=True)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(self.n2(x))


class Infiller(nn.Module):
    def __init__(self, cell, width, depth):
        super().__init__()
        self.cell = cell
        self.enter = nn.Linear(cell * cell, width)
        self.layers = nn.Sequential(*[Layer(width, max(1, width // 64)) for _ in range(depth)])
        self.leave = nn.Linear(width, cell * cell)

    def patches(self, g):
        b, h, w = g.shape
        c = self.cell
        return g.view(b, h // c, c, w // c, c).transpose(2, 3).reshape(b, -1, c * c)

    def forward(self, cells):
        return self.leave(self.layers(self.enter(cells)))


shots, traces, samples, per, steps = (12, 32, 64, 4, 5) if TINY else (1024, 256, 2048, 64, 450)
torch.manual_seed(0)
vault = ShotVault(shots, traces, samples)
model = Infiller(8 if TINY else 32, 64 if TINY else 256, 2 if TINY else 4).to(dev)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
running = torch.zeros((), device=dev)
alive = (torch.arange(traces, device=dev) % 5 != 0).float()[:, None]
for gather in vault.windows(per, steps):
    with torch.autocast(dev.type, dtype=torch.bfloat16):
        loss = F.mse_loss(model(model.patches(gather * alive)), model.patches(gather))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    running += loss.detach()
print(f"mean misfit {running.item() / steps:.4f}")
