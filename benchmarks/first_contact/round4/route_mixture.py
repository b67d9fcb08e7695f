"""Language model whose feed-forward part is a soft mixture of low-rank experts."""
import os
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F


def config():
    if os.environ.get("SMALL") == "1":
        return SimpleNamespace(vocab=128, dim=32, layers=2, heads=2, experts=4, seq=32, batch=4, steps=30)
    return SimpleNamespace(vocab=8192, dim=768, layers=6, heads=12, experts=16, seq=512, batch=16, steps=70)


class Meter:
    def __init__(self, name):
        self.name, self.total, self.count = name, 0.0, 0

    def update(self, value):
        self.total = self.total + value  # flaw: graph-kept-alive
        self.count += 1

    def show(self):
        return f"{self.name}={float(self.total) / max(1, self.count):.4f}"


class SoftMixture(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate = nn.Linear(c.dim, c.experts)
        self.down = nn.Linear(c.dim, c.experts * 64)
        self.up = nn.Linear(c.experts * 64, c.dim)
        self.experts = c.experts

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        h = F.gelu(self.down(x)).unflatten(-1, (self.experts, 64))
        return self.up((h * share.to(h.dtype).unsqueeze(-1)).flatten(-2))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.na, self.nm = nn.LayerNorm(c.dim), nn.LayerNorm(c.dim)
        self.qkv, self.out = nn.Linear(c.dim, 3 * c.dim), nn.Linear(c.dim, c.dim)
        self.mix = SoftMixture(c)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.na(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mix(self.nm(x))


class MixtureLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c.vocab, c.dim)
        self.pos = nn.Parameter(torch.zeros(c.seq, c.dim))
        self.blocks = nn.Sequential(*[Block(c) for _ in range(c.layers)])
        self.norm = nn.LayerNorm(c.dim)
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids):
        return F.linear(self.norm(self.blocks(self.tok(ids) + self.pos)), self.tok.weight)


def main():
    c = config()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(9)
    model = MixtureLM(c).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    meters = {"loss": Meter("loss"), "log_z": Meter("log_z")}
    data = torch.randint(c.vocab, (c.batch * 20, c.seq + 1), device=device)
    probe = slice(0, max(1, c.batch // 4))
    for step in range(c.steps):
        rows = data[torch.randint(len(data), (c.batch,), device=device)]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        log_z = logits[probe].float().logsumexp(-1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        meters["loss"].update(loss.detach())
        meters["log_z"].update(log_z)  # flaw: graph-kept-alive
        if (step + 1) % 35 == 0:
            print(step + 1, *(m.show() for m in meters.values()))


if __name__ == "__main__":
    main()
