"""Language modelling with label smoothing for a compact decoder (stage one of a distillation recipe)."""
import os
from typing import Callable, Dict

import torch
import torch.nn as nn
import torch.nn.functional as F

OBJECTIVES: Dict[str, Callable] = {}
fast = os.environ.get("SMALL", "0") not in ("", "0")


def objective(name):
    def add(fn):
        OBJECTIVES[name] = fn
        return fn

    return add


@objective("smooth")
def smooth(logits, target, eps=0.1):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=eps)


@objective("confidence")
def confidence(logits, target):
    return -F.log_softmax(logits, -1).amax(-1).mean()


class Mix(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm = nn.LayerNorm(d)
        self.fused = nn.Linear(d, 3 * d + 4 * d)
        self.back = nn.Linear(d + 4 * d, d)
        self.d = d

    def forward(self, x):
        b, t, d = x.shape
        qkv, ff = self.fused(self.norm(x)).split([3 * d, 4 * d], -1)
        q, k, v = qkv.view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        return x + self.back(torch.cat([a, F.gelu(ff)], -1))


def build(vocab, d, depth):
    return nn.Sequential(
        nn.Embedding(vocab, d), *[Mix(d, max(1, d // 64)) for _ in range(depth)], nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
    )


def train(vocab=32768, d=512, depth=4, batch=16, length=512, steps=80, objective="smooth"):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    net = build(vocab, d, depth).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    criterion = OBJECTIVES[objective]
    for i in range(steps):
        ids = torch.randint(vocab, (batch, length + 1), device=device)
        with torch.autocast(device, torch.bfloat16):
            logits = net(ids[:, :-1])
            loss = criterion(logits, ids[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 20 == 0:
            print(i, f"{loss.item():.3f}")


if fast:
    train(vocab=512, d=32, depth=1, batch=2, length=16, steps=30)
else:
    train()
