"""Patch transformer for station weather series."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class PatchEmbed(nn.Module):
    def __init__(self, patch, dim):
        super().__init__()
        self.patch = patch
        self.proj = nn.Linear(patch, dim)

    def forward(self, series):
        return self.proj(series.unfold(-1, self.patch, self.patch))


class Stage(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.na, self.nb = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.mix = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.na(x)).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.mix(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.nb(x))


class PatchForecaster(nn.Module):
    def __init__(self, context, horizon, patch, dim, heads, depth):
        super().__init__()
        self.embed = PatchEmbed(patch, dim)
        self.position = nn.Parameter(torch.randn(context // patch, dim) * 0.02)
        self.stages = nn.ModuleList([Stage(dim, heads) for _ in range(depth)])
        self.head = nn.Linear(dim, horizon)

    def forward(self, series):
        x = self.embed(series) + self.position
        for stage in self.stages:
            x = checkpoint(stage, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(x.mean(1))


def make_series(n, length, device):
    t = torch.arange(length, device=device) / 24
    season = torch.rand(n, 1, device=device) * 6.28
    return torch.sin(t + season) + 0.3 * torch.sin(t / 7) + 0.1 * torch.randn(n, length, device=device)


def main():
    if os.environ.get("SMALL") == "1":
        context, horizon, patch, dim, heads, depth, batch, steps = 48, 8, 8, 16, 2, 1, 4, 30
    else:
        context, horizon, patch, dim, heads, depth, batch, steps = 2048, 192, 16, 640, 10, 6, 128, 80
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = PatchForecaster(context, horizon, patch, dim, heads, depth).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    data = make_series(4 * batch, context + horizon, device)
    for step in range(steps):
        rows = data[(step % 4) * batch:(step % 4 + 1) * batch]
        past, future = rows[:, :context], rows[:, context:]
        with torch.autocast(device, torch.bfloat16):
            loss = F.l1_loss(model(past), future)
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 25 == 0:
            print("step", step, "mae", loss.item())


main()
