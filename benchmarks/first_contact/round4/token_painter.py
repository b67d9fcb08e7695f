"""Masked prediction of image tokens from a discrete codebook."""
import math, os
from types import SimpleNamespace as NS
import torch
from torch import nn
from torch.nn import functional as F

full = NS(codes=8192, grid=16, width=512, layers=6, heads=8, batch=64, steps=80)
tiny = NS(codes=128, grid=4, width=32, layers=1, heads=2, batch=2, steps=30)
hp = tiny if os.environ.get("SMALL") else full
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MASK = hp.codes


class Block(nn.Module):
    def __init__(self, w, h):
        super().__init__()
        self.h = h
        self.na, self.nm = nn.LayerNorm(w), nn.LayerNorm(w)
        self.to_qkv = nn.Linear(w, 3 * w, bias=False)
        self.to_out = nn.Linear(w, w, bias=False)
        self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, x):
        B, N, W = x.shape
        q, k, v = (t.view(B, N, self.h, -1).transpose(1, 2) for t in self.to_qkv(self.na(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.to_out(a.transpose(1, 2).reshape(B, N, W))
        return x + self.down(F.gelu(self.up(self.nm(x))))


class Painter(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.tok = nn.Embedding(hp.codes + 1, hp.width)
        self.pos = nn.Parameter(torch.zeros(hp.grid ** 2, hp.width))
        self.blocks = nn.ModuleList(Block(hp.width, hp.heads) for _ in range(hp.layers))
        self.norm = nn.LayerNorm(hp.width)
        self.head = nn.Linear(hp.width, hp.codes + 1, bias=False)  # flaw: misaligned-matmul

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for b in self.blocks:
            x = b(x)
        return self.head(self.norm(x))


def corrupt(ids):
    ratio = torch.cos(torch.rand(len(ids), 1, device=ids.device) * math.pi / 2)
    hide = torch.rand(ids.shape, device=ids.device) < ratio
    return torch.where(hide, MASK, ids), torch.where(hide, ids, -100)


def images():
    store = torch.randint(hp.codes, (4096 if hp is full else 16, hp.grid ** 2), device=device)
    while True:
        yield store[torch.randint(len(store), (hp.batch,), device=device)]


model = Painter(hp).to(device)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.96), fused=device.type == "cuda")
for step, ids in zip(range(hp.steps), images()):
    x, y = corrupt(ids)
    with torch.autocast(device.type, torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)
    loss.backward()
    opt.step()
    opt.zero_grad()
    if step % 20 == 0:
        print(f"{step:4d} {loss.item():.3f}")
