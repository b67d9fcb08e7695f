"""Perceiver that sorts lidar sweeps into scene types."""
import os

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCH, POINTS, LATENTS, WIDTH, HEADS, DEPTH, STEPS = (2, 64, 16, 32, 2, 2, 4) if TINY else (16, 4096, 1024, 512, 8, 4, 600)


class Projections(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_kv = nn.Linear(width, 2 * width, bias=False)
        self.to_out = nn.Linear(width, width)

    def fold(self, t):
        b, n, _ = t.shape
        return t.reshape(b, n, self.heads, -1).transpose(1, 2)

    def unfold(self, t):
        b, _, n, _ = t.shape
        return t.transpose(1, 2).reshape(b, n, -1)

    def mix(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Attend(Projections):
    def __init__(self, width, heads):
        super().__init__(width, heads)
        self.norm = nn.LayerNorm(width)
        self.norm_context = nn.LayerNorm(width)

    def forward(self, x, context=None):
        x = self.norm(x)
        context = x if context is None else self.norm_context(context)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        mixed = self.mix(self.fold(self.to_q(x)), self.fold(k), self.fold(v))
        return self.to_out(self.unfold(mixed))


def mlp(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Perceiver(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)
        self.latents = nn.Parameter(torch.randn(LATENTS, WIDTH) * 0.02)
        self.read = Attend(WIDTH, HEADS)
        self.read_mlp = mlp(WIDTH)
        self.layers = nn.ModuleList(nn.ModuleList([Attend(WIDTH, HEADS), mlp(WIDTH)]) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 16)

    def forward(self, sweep):
        points = self.embed(sweep)
        z = self.latents.expand(len(sweep), -1, -1)
        z = z + self.read(z, points)
        z = z + self.read_mlp(z)
        for attend, feed in self.layers:
            z = z + attend(z)
            z = z + feed(z)
        return self.head(z.mean(1))


def sweeps():
    g = torch.Generator(DEV).manual_seed(1)
    while True:
        kinds = torch.randint(16, (BATCH,), device=DEV, generator=g)
        cloud = torch.randn(BATCH, POINTS, 4, device=DEV, generator=g)
        yield cloud * (1 + kinds.view(-1, 1, 1) / 8), kinds


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Perceiver().to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    criterion = nn.CrossEntropyLoss()
    seen = torch.zeros((), device=DEV)
    for step, (cloud, kinds) in zip(range(STEPS), sweeps()):
        with torch.autocast(DEV.type, dtype=torch.bfloat16):
            loss = criterion(model(cloud), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.detach()
    print(f"mean loss {seen.item() / STEPS:.2f}")


main()
