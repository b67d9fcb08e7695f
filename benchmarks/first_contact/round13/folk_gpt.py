"""Character-level GPT on generated folk tunes."""
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 128
    context: int = 1024
    dim: int = 1024
    heads: int = 16
    layers: int = 8
    batch: int = 32
    steps: int = 200
    lr: float = 4e-4
    compiled: bool = True


if os.environ.get("TINY") == "1":
    cfg = GPTConfig(context=32, dim=32, heads=2, layers=2, batch=4, steps=6, compiled=False)
else:
    cfg = GPTConfig()


class Block(nn.Module):
    def __init__(self, c: GPTConfig):
        super().__init__()
        self.heads = c.heads
        self.n1, self.n2 = nn.RMSNorm(c.dim), nn.RMSNorm(c.dim)
        self.qkv = nn.Linear(c.dim, 3 * c.dim, bias=False)
        self.o = nn.Linear(c.dim, c.dim, bias=False)
        self.up, self.down = nn.Linear(c.dim, 4 * c.dim, bias=False), nn.Linear(4 * c.dim, c.dim, bias=False)

    def forward(self, x):
        q, k, v = (t.transpose(1, 2) for t in self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).unbind(2))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    def __init__(self, c: GPTConfig):
        super().__init__()
        self.wte = nn.Embedding(c.vocab, c.dim)
        self.wpe = nn.Parameter(torch.zeros(c.context, c.dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.dim)
        self.head = nn.Linear(c.dim, c.vocab, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, target):
        x = self.wte(ids) + self.wpe
        for b in self.blocks:
            x = b(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), target.flatten())


def tunes(n, device):
    """A long periodic melody with ornaments, as one token stream."""
    t = torch.arange(n, device=device)
    g = torch.Generator(device).manual_seed(0)
    ornament = torch.randint(0, 3, (n,), device=device, generator=g)
    return (t % 37 * 2 + (t // 64) % 16 + ornament) % 128


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(42)
    stream = tunes(1 << (12 if not cfg.compiled else 24), device)
    windows = stream.unfold(0, cfg.context + 1, 1)
    model = GPT(cfg).to(device)
    if cfg.compiled:
        for b in model.blocks:
            b.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), fused=gpu)
    losses = torch.empty(cfg.steps, device=device)
    for i in range(cfg.steps):
        rows = windows[torch.randint(len(windows), (cfg.batch,), device=device)]
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            loss = model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        losses[i] = loss.detach()
    print(f"loss {losses[0].item():.4f} -> {losses[-1].item():.4f}")


main()
