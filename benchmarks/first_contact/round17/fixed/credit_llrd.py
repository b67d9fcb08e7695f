"""Fine-tune a tabular transformer on credit files, with smaller rates for lower layers."""
import os
from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F


class Plan(NamedTuple):
    columns: int
    width: int
    depth: int
    rows: int
    steps: int
    rate: float = 4e-4
    fade: float = 0.9


PLAN = Plan(6, 16, 2, 8, 4) if os.environ.get("TINY") else Plan(48, 192, 20, 512, 500)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.pre, self.mid = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.thin = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.pre(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.thin(F.gelu(self.wide(self.mid(x))))


class Tabular(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(plan.columns, plan.width) * 0.1)
        self.shift = nn.Parameter(torch.randn(plan.columns, plan.width) * 0.1)
        self.cells = nn.ModuleList([Cell(plan.width) for _ in range(plan.depth)])
        self.head = nn.Linear(plan.width, 1)

    def forward(self, x):
        x = x[..., None] * self.scale + self.shift
        for cell in self.cells:
            x = cell(x)
        return self.head(x.mean(1)).squeeze(-1)


def rate_of(name, plan):
    if name.startswith("cells."):
        return plan.rate * plan.fade ** (plan.depth - 1 - int(name.split(".")[1]))
    return plan.rate if name.startswith("head") else plan.rate * plan.fade**plan.depth


def layerwise(net, plan):
    groups = {}
    for n, p in net.named_parameters():
        groups.setdefault(rate_of(n, plan), []).append(p)
    return [{"params": ps, "lr": rate} for rate, ps in groups.items()]


def train(plan):
    torch.manual_seed(6)
    net = Tabular(plan).to(DEVICE)
    tuner = torch.optim.AdamW(layerwise(net, plan), weight_decay=0.01, fused=True)
    files = torch.randn(plan.rows * 16, plan.columns, device=DEVICE)
    default = (files[:, :3].sum(1) > 0.5).float()
    track = torch.empty(plan.steps, device=DEVICE)
    for i in range(plan.steps):
        part = slice(i % 16 * plan.rows, (i % 16 + 1) * plan.rows)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            odds = net(files[part])
        loss = F.binary_cross_entropy_with_logits(odds.float(), default[part])
        tuner.zero_grad(set_to_none=True)
        loss.backward()
        tuner.step()
        track[i] = loss.detach()
    return track


t = train(PLAN)
print(f"start {t[0].item():.3f} mean {t.mean().item():.3f}")
