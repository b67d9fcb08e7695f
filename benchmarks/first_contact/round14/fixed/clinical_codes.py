"""Next-code model for patient records: a causal network over diagnosis codes, trained with smoothed targets."""
import os
import types

import torch
import torch.nn.functional as F
from torch import nn

if os.environ.get("TINY"):
    hp = types.SimpleNamespace(codes=200, visits=16, width=32, depth=2, heads=4, batch=4, steps=4)
else:
    hp = types.SimpleNamespace(codes=32_000, visits=256, width=512, depth=6, heads=8, batch=32, steps=500)

SMOOTHING = 0.1
OBJECTIVES = {}


def objective(name):
    def put(function):
        OBJECTIVES[name] = function
        return function
    return put


@objective("plain")
def plain(scores, truth):
    return F.cross_entropy(scores, truth)


@objective("smoothed")
def smoothed(scores, truth):
    return F.cross_entropy(scores, truth, label_smoothing=SMOOTHING)


class Visit(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.o = nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (t.transpose(1, 2) for t in self.qkv(self.a(x)).unflatten(-1, (3, self.heads, -1)).unbind(2))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ff(self.b(x))


class Record(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Embedding(hp.codes, hp.width)
        self.when = nn.Parameter(torch.randn(hp.visits, hp.width) * 0.02)
        self.visits = nn.Sequential(*[Visit(hp.width, hp.heads) for _ in range(hp.depth)])
        self.norm = nn.LayerNorm(hp.width)
        self.head = nn.Linear(hp.width, hp.codes, bias=False)
        self.head.weight = self.code.weight
        nn.init.normal_(self.code.weight, std=0.02)

    def forward(self, codes):
        return self.head(self.norm(self.visits(self.code(codes) + self.when)))


def run(kind):
    torch.manual_seed(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Record().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.98), fused=True)
    rule = OBJECTIVES[kind]
    step = 0
    while step < hp.steps:
        records = torch.randint(0, hp.codes, (hp.batch, hp.visits + 1), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(records[:, :-1])
            loss = rule(scores.flatten(0, 1), records[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 1:
            print(f"{step:5d} {loss.item():.4f}", flush=True)
    print(f"end   {loss.item():.4f}")


run("smoothed")
