# BEiT-style pretraining: predict the tokenizer's code of every hidden patch
import os
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = SimpleNamespace(dim=512, depth=6, heads=8, grid=14, patch=16, codes=8192, hide=60, batch=128, steps=70)
if os.getenv("SMALL"):
    vars(cfg).update(dim=32, depth=1, heads=2, grid=4, patch=4, codes=64, hide=6, batch=4, steps=30)
dev = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
amp = lambda: torch.autocast(dev.type, dtype=torch.bfloat16)  # noqa: E731


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.n2(x))


class Beit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patchify = nn.Conv2d(3, cfg.dim, cfg.patch, cfg.patch)
        self.mask_token = nn.Parameter(torch.zeros(cfg.dim))
        self.pos = nn.Parameter(torch.randn(cfg.grid**2, cfg.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(cfg.dim, cfg.heads) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.dim)
        self.to_codes = nn.Linear(cfg.dim, cfg.codes)

    def forward(self, images, hidden):
        x = self.patchify(images).flatten(2).transpose(1, 2)
        x = torch.where(hidden[..., None], self.mask_token.to(x.dtype), x) + self.pos
        return self.to_codes(self.norm(self.blocks(x)))  # flaw: unused-logits


def draw_mask(batch):
    order = torch.rand(batch, cfg.grid**2, device=dev).argsort(1)[:, : cfg.hide]
    hidden = torch.zeros(batch, cfg.grid**2, dtype=torch.bool, device=dev).scatter_(1, order, True)
    rows = torch.arange(batch, device=dev)[:, None] * cfg.grid**2
    return hidden, (order + rows).flatten()


def objective(net, images, codes):
    hidden, where = draw_mask(len(images))
    with amp():
        logits = net(images, hidden).flatten(0, 1)[where]  # flaw: unused-logits
        return F.cross_entropy(logits, codes.flatten()[where])


def main():
    torch.manual_seed(1)
    side = cfg.grid * cfg.patch
    pool = [
        (torch.randn(cfg.batch, 3, side, side, device=dev), torch.randint(cfg.codes, (cfg.batch, cfg.grid**2), device=dev))
        for _ in range(3)
    ]
    net = Beit().to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
    running = torch.zeros((), device=dev)
    for it in range(cfg.steps):
        loss = objective(net, *pool[it % 3])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running.lerp_(loss.detach(), 0.1)
        if (it + 1) % 30 == 0:
            print(f"[{it + 1}/{cfg.steps}] {running.item():.3f}")


if __name__ == "__main__":
    main()
