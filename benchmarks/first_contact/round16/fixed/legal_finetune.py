"""Fine-tunes a small encoder on clauses of contracts, with a lower rate for lower layers."""
import os
from types import SimpleNamespace

import torch
from torch import nn

tiny = os.environ.get("TINY") == "1"
hp = SimpleNamespace(vocab=8192, width=384, heads=6, depth=14, length=128, rows=64, kinds=41, lr=3e-4, fade=0.85, decay=0.05, steps=700)
if tiny:
    hp.__dict__.update(vocab=64, width=16, heads=2, depth=2, length=8, rows=4, steps=4)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self, w, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(w), nn.LayerNorm(w)
        self.qkv, self.proj = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.up, self.down = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, n, w))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Clauses(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.words = nn.Embedding(hp.vocab, hp.width)
        self.layers = nn.ModuleList([Layer(hp.width, hp.heads) for _ in range(hp.depth)])
        self.head = nn.Linear(hp.width, hp.kinds)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def depth_of(name, hp):
    if name.startswith("words"):
        return 0
    return int(name.split(".")[1]) + 1 if name.startswith("layers") else hp.depth + 1


def rated_parameters(model, hp):
    groups = {}
    for name, weight in model.named_parameters():
        rate = hp.lr * hp.fade ** (hp.depth + 1 - depth_of(name, hp))
        groups.setdefault((rate, 0.0 if weight.ndim < 2 else hp.decay), []).append(weight)
    return [{"params": weights, "lr": rate, "weight_decay": decay} for (rate, decay), weights in groups.items()]


torch.manual_seed(4)
torch.set_float32_matmul_precision("high")
model = Clauses(hp).to(device)
optimizer = torch.optim.AdamW(rated_parameters(model, hp), betas=(0.9, 0.98), fused=True)
total = torch.zeros((), device=device)
for step in range(hp.steps):
    ids = torch.randint(hp.vocab, (hp.rows, hp.length), device=device)
    wanted = ids[:, 0] % hp.kinds
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(ids), wanted)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.detach()
print("mean loss %.3f" % (total.item() / hp.steps))
