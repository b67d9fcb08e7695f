import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class ModelConfig:
    vocab_size: int = 30001  # flaw: misaligned-matmul
    block_size: int = 512
    n_layer: int = 2
    n_head: int = 12
    n_embd: int = 768


@dataclass
class TrainConfig:
    batch_size: int = 12
    lr: float = 6e-4
    iters: int = 400
    model: ModelConfig = field(default_factory=ModelConfig)


class Attn(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n_head = c.n_head
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (z.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(c.n_embd), Attn(c), nn.LayerNorm(c.n_embd)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.wpe = nn.Embedding(c.block_size, c.n_embd)
        self.h = nn.ModuleList([Block(c) for _ in range(c.n_layer)])
        self.ln_f = nn.LayerNorm(c.n_embd)
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)  # flaw: misaligned-matmul
        self.register_buffer("pos", torch.arange(c.block_size), persistent=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(self.pos[: idx.size(1)])
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))  # flaw: misaligned-matmul


def lr_at(it, cfg):
    return cfg.lr * min(1.0, (it + 1) / 50) * (0.55 + 0.45 * math.cos(math.pi * it / cfg.iters))


if __name__ == "__main__":
    cfg = TrainConfig()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = LM(cfg.model).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.1, fused=True)
    text = torch.randint(0, cfg.model.vocab_size, (2_000_000,), device=device)
    span = torch.arange(cfg.model.block_size + 1, device=device)
    for it in range(cfg.iters):
        for g in opt.param_groups:
            g["lr"] = lr_at(it, cfg)
        start = torch.randint(0, len(text) - len(span), (cfg.batch_size, 1), device=device)
        chunk = text[start + span]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(chunk[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), chunk[:, 1:].reshape(-1))
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if it % 100 == 0:
            print(it, loss.item())
