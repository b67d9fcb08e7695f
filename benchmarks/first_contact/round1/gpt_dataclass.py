"""A causal language model on random tokens, set up by a dataclass."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 8192
    width: int = 768
    heads: int = 12
    depth: int = 6
    context: int = 1024
    batch: int = 8
    steps: int = 400
    lr: float = 3e-4


class CausalMixer(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.h = cfg.heads
        self.to_qkv = nn.Linear(cfg.width, 3 * cfg.width, bias=False)
        self.proj = nn.Linear(cfg.width, cfg.width, bias=False)
        future = torch.ones(cfg.context, cfg.context).triu(1)
        self.register_buffer("penalty", future * -1e9, persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.to_qkv(x).reshape(b, t, 3, self.h, c // self.h).unbind(2)
        sim = torch.einsum("bihd,bjhd->bhij", q, k) * (c // self.h) ** -0.5  # flaw: hand-written-attention
        sim = sim + self.penalty[:t, :t]  # flaw: hand-written-attention
        attn = sim.softmax(dim=-1)  # flaw: hand-written-attention
        y = torch.einsum("bhij,bjhd->bihd", attn, v)  # flaw: hand-written-attention
        return self.proj(y.reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(cfg.width), nn.LayerNorm(cfg.width)
        self.mix = CausalMixer(cfg)
        self.ff = nn.Sequential(nn.Linear(cfg.width, 4 * cfg.width), nn.GELU(), nn.Linear(4 * cfg.width, cfg.width))

    def forward(self, x):
        x = x + self.mix(self.n1(x))
        return x + self.ff(self.n2(x))


class GPT(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.width)
        self.pos = nn.Parameter(torch.zeros(cfg.context, cfg.width))
        self.layers = nn.ModuleList([Layer(cfg) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    cfg = Config()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = GPT(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, fused=True)
    corpus = torch.randint(cfg.vocab, (64, cfg.batch, cfg.context + 1), device=device)
    for step in range(cfg.steps):
        ids = corpus[step % 64]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, cfg.vocab), ids[:, 1:].reshape(-1))
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 100 == 0:
            print(step, loss.item())


if __name__ == "__main__":
    main()
