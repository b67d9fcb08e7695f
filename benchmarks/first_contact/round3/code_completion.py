"""Multi-query decoder for source code, trained on random token streams."""
import math
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 16384
    width: int = 768
    heads: int = 8
    depth: int = 6
    block: int = 1024
    batch: int = 8
    steps: int = 80
    lr: float = 3e-4

    @classmethod
    def from_env(cls):
        if os.environ.get("SMALL") == "1":
            return cls(vocab=256, width=64, heads=4, depth=2, block=64, batch=2, steps=30)
        return cls()


class MultiQuery(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.dim = cfg.heads, cfg.width // cfg.heads
        self.to_q = nn.Linear(cfg.width, cfg.width, bias=False)
        self.to_kv = nn.Linear(cfg.width, 2 * self.dim, bias=False)
        self.proj = nn.Linear(cfg.width, cfg.width, bias=False)
        hidden = torch.ones(cfg.block, cfg.block, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        q = self.to_q(x).view(b, n, self.heads, self.dim)
        k, v = self.to_kv(x).chunk(2, dim=-1)
        sim = torch.einsum("bihd,bjd->bhij", q, k) / math.sqrt(self.dim)  # flaw: hand-written-attention
        sim = sim.masked_fill(self.hidden[:n, :n], -torch.finfo(sim.dtype).max)  # flaw: hand-written-attention
        attn = sim.softmax(dim=-1)  # flaw: hand-written-attention
        out = torch.einsum("bhij,bjd->bihd", attn, v)  # flaw: hand-written-attention
        return self.proj(out.reshape(b, n, -1))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.attn = MultiQuery(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.width)
        self.pos = nn.Embedding(cfg.block, cfg.width)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.depth))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocab, bias=False)

    def forward(self, ids, targets):
        x = self.tok(ids) + self.pos.weight[: ids.size(1)]
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    cfg = Config.from_env()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    stream = torch.randint(cfg.vocab, (64, cfg.batch, cfg.block + 1), device=device)
    model = Decoder(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    for step in range(cfg.steps):
        chunk = stream[step % 64]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = model(chunk[:, :-1], chunk[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(step, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
