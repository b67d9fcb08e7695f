"""Fill gaps of a rain-gauge network from the other stations and a few radar pixels.

Stations attend to each other; the scores are lowered with the distance (in tens of kilometres) and
stations that did not report are left out.
"""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")


class Heads(nn.Module):
    """Splits into heads that live in the batch dimension."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def fold(self, t):
        rows, count, dim = t.shape
        t = t.view(rows, count, self.heads, dim // self.heads)
        return t.transpose(1, 2).reshape(rows * self.heads, count, dim // self.heads)

    def unfold(self, t, rows):
        _, count, width = t.shape
        return t.view(rows, self.heads, count, width).transpose(1, 2).reshape(rows, count, self.heads * width)

    def forward(self, x, penalty):
        q, k, v = (self.fold(t) for t in self.to_qkv(x).chunk(3, dim=-1))
        mixed = self.attend(q, k, v, penalty)
        return self.to_out(self.unfold(mixed, len(x)))

    def attend(self, q, k, v, penalty):
        near = torch.baddbmm(penalty, q, k.transpose(1, 2), beta=1, alpha=self.scale)  # flaw: hand-written-attention
        near = near.softmax(dim=-1)  # flaw: hand-written-attention
        return torch.bmm(near, v)  # flaw: hand-written-attention


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.pre, self.post = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.heads = Heads(dim, heads)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, penalty):
        x = x + self.heads(self.pre(x), penalty)
        return x + self.feed(self.post(x))


class Infill(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2):
        super().__init__()
        self.heads = heads
        self.enter = nn.Linear(4, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.leave = nn.Linear(dim, 1)

    def forward(self, place, rain, silent):
        seen = torch.where(silent, 0.0, rain)
        x = self.enter(torch.cat([place, seen[..., None], silent[..., None].float()], dim=-1))
        penalty = -torch.cdist(place, place).masked_fill(silent[:, None, :], 1e4)
        penalty = penalty.repeat_interleave(self.heads, dim=0)
        for layer in self.layers:
            x = layer(x, penalty)
        return self.leave(x).squeeze(-1)


class Storms:
    """Storm cells that drift over random networks of gauges."""

    def __init__(self, seed, days=96, stations=640):
        rng = torch.Generator().manual_seed(seed)
        self.place = torch.rand(days, stations, 2, generator=rng) * 8
        cells = torch.rand(days, 5, 2, generator=rng) * 8
        gap = (self.place[:, :, None] - cells[:, None]).square().sum(-1)
        self.rain = torch.exp(-gap / 1.5).sum(-1) + 0.02 * torch.randn(days, stations, generator=rng)
        self.silent = torch.rand(days, stations, generator=rng) < 0.2
        self.rng = rng

    def to(self, device):
        self.place, self.rain, self.silent = (t.to(device) for t in (self.place, self.rain, self.silent))
        return self

    def batch(self, rows):
        pick = torch.randint(len(self.place), (rows,), generator=self.rng).to(self.place.device)
        return self.place[pick], self.rain[pick], self.silent[pick]


class Fit:
    def __init__(self, rows=4, lr=1e-3):
        torch.manual_seed(17)
        self.storms = Storms(18).to(DEVICE)
        self.net = Infill().to(DEVICE)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr, fused=True)
        self.rows = rows

    def once(self):
        place, rain, silent = self.storms.batch(self.rows)
        error = F.mse_loss(self.net(place, rain, silent), rain, reduction="none")
        loss = (error * silent).sum() / silent.sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()

    def go(self, steps, block):
        for start in range(0, steps, block):
            begin = time.monotonic()
            loss = torch.stack([self.once() for _ in range(block)]).mean().item()
            took = (time.monotonic() - begin) / block
            print(f"[{start + block:4d}] rmse {math.sqrt(loss):.5f} mm  ({took * 1e3:.1f} ms/step)", flush=True)


if __name__ == "__main__":
    Fit().go(steps=180, block=20)
