"""Causal language model over log lines."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
D, H, L, T, B, V, STEPS = (32, 2, 2, 16, 2, 64, 6) if TINY else (1024, 16, 8, 1024, 16, 8192, 350)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        q, k, v = self.qkv(self.a(x)).unflatten(-1, (3, H, D // H)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.b(x))


class LogModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(T, D)
        self.blocks = nn.Sequential(*[Block() for _ in range(L)])
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tok(ids) + self.pos.weight)))


torch.manual_seed(12)
dev = "cuda" if torch.cuda.is_available() else "cpu"
model = LogModel().to(dev)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
lines = torch.randint(V, (8, B, T + 1), device=dev)
for step in range(STEPS):
    ids = lines[step % 8]
    with torch.autocast(dev, dtype=torch.bfloat16):
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    if step % 100 == 0:
        print(step, f"{loss.item():.3f}")
