"""Probability that a grid cell burns tomorrow; attention between cells fades with their distance."""
import os

import torch
import torch.nn.functional as F
from torch import nn

QUICK = "TINY" in os.environ
GRID = 8 if QUICK else 28
DAYS = 6 if QUICK else 90
MAPS = 1
WIDTH, HEADS, DEPTH = 64, 4, 2


class DistanceDecay(nn.Module):
    """One slope for each head, from local to global."""

    def __init__(self, grid, heads):
        super().__init__()
        ys, xs = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
        self.register_buffer("cells", torch.stack([ys.flatten(), xs.flatten()], -1).float())
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1).float())

    def forward(self):
        apart = torch.cdist(self.cells, self.cells)  # flaw: constant-rebuilt
        bias = -self.slopes[:, None, None] * apart  # flaw: constant-rebuilt
        return bias.masked_fill(apart > 12.0, -30.0).unsqueeze(0)  # flaw: constant-rebuilt


class CellBlock(nn.Module):
    def __init__(self, grid):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.decay = DistanceDecay(grid, HEADS)

    def forward(self, x):
        n, cells, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, cells, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=self.decay())
        x = x + self.out(seen.transpose(1, 2).reshape(n, cells, WIDTH))
        return x + self.mlp(x)


class FireModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(7, WIDTH)
        self.blocks = nn.ModuleList(CellBlock(GRID) for _ in range(DEPTH))
        self.risk = nn.Linear(WIDTH, 1)

    def forward(self, weather):
        x = self.read(weather)
        for block in self.blocks:
            x = block(x)
        return self.risk(x).squeeze(-1)


def season():
    g = torch.Generator().manual_seed(8)
    for _ in range(DAYS):
        weather = torch.randn(MAPS, GRID * GRID, 7, generator=g)
        heat = weather[..., 0].view(MAPS, 1, GRID, GRID)
        burns = (F.avg_pool2d(heat, 3, stride=1, padding=1) > 0.2).float().flatten(1)
        yield weather, burns


torch.manual_seed(0)
model = FireModel()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
for day, (weather, burns) in enumerate(season(), 1):
    loss = F.binary_cross_entropy_with_logits(model(weather), burns)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if day % (DAYS // 3) == 0:
        print(f"day {day}: {loss.item():.5f}")
