#!/usr/bin/env python
"""Fine-tune a deep, narrow poem model with a sign-based optimizer."""
from __future__ import annotations

import os
from typing import Iterable

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer


def sizes() -> dict[str, int]:
    if os.getenv("SMALL", "") == "1":
        return dict(vocab=128, dim=32, layers=3, heads=2, block=32, batch=4, steps=30)
    return dict(vocab=4096, dim=512, layers=24, heads=8, block=512, batch=32, steps=70)


class SignMomentum(Optimizer):
    def __init__(self, params: Iterable[nn.Parameter], lr: float = 1e-4, betas=(0.9, 0.99), decay: float = 0.0):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (b1, b2), decay = group["lr"], group["betas"], group["decay"]
            for p in group["params"]:  # flaw: parameter-loop
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                p.mul_(1 - lr * decay)  # flaw: parameter-loop
                direction = m.clone().mul_(b1).add_(p.grad, alpha=1 - b1).sign_()  # flaw: parameter-loop
                p.add_(direction, alpha=-lr)  # flaw: parameter-loop
                m.mul_(b2).add_(p.grad, alpha=1 - b2)  # flaw: parameter-loop


class Stanza(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.pre = nn.LayerNorm(dim)
        self.attn_in = nn.Linear(dim, dim * 3)
        self.attn_out = nn.Linear(dim, dim)
        self.mid = nn.LayerNorm(dim)
        self.ff_in = nn.Linear(dim, dim * 4)
        self.ff_out = nn.Linear(dim * 4, dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.attn_in(self.pre(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + self.attn_out(a)
        return x + self.ff_out(F.gelu(self.ff_in(self.mid(x))))


class Poet(nn.Module):
    def __init__(self, vocab, dim, layers, heads, block, **_):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.order = nn.Parameter(torch.randn(block, dim) * 0.01)
        self.stanzas = nn.Sequential(*(Stanza(dim, heads) for _ in range(layers)))
        self.final = nn.LayerNorm(dim)

    def forward(self, ids):
        h = self.embed(ids) + self.order[: ids.size(1)]
        return F.linear(self.final(self.stanzas(h)), self.embed.weight)


def main() -> None:
    s = sizes()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1609)
    poet = Poet(**s).to(device)
    opt = SignMomentum(poet.parameters(), lr=1e-4, decay=0.01)
    text = torch.randint(s["vocab"], (s["batch"] * 20, s["block"] + 1), device=device)
    for step in range(s["steps"]):
        lines = text[torch.randint(len(text), (s["batch"],), device=device)]
        with torch.autocast(device.type, torch.bfloat16):
            logits = poet(lines[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, s["vocab"]), lines[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
