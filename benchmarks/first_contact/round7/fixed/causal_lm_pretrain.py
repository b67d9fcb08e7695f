"""Pretrain a small GPT on a token stream."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

ON_GPU = torch.cuda.is_available()


@dataclass
class Config:
    vocab: int = 16384 if ON_GPU else 256
    dim: int = 768 if ON_GPU else 32
    heads: int = 12 if ON_GPU else 2
    layers: int = 6 if ON_GPU else 2
    context: int = 1024 if ON_GPU else 16
    batch: int = 16 if ON_GPU else 2
    steps: int = 120 if ON_GPU else 4
    lr: float = 3e-4
    warmup: int = 20
    device: str = "cuda" if ON_GPU else "cpu"


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.out = nn.Linear(cfg.dim, cfg.dim, bias=False)
        mask = torch.ones(cfg.context, cfg.context, dtype=torch.bool).tril()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1 = nn.LayerNorm(cfg.dim)
        self.attn = CausalSelfAttention(cfg)
        self.ln2 = nn.LayerNorm(cfg.dim)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, 4 * cfg.dim, bias=False),
            nn.GELU(),
            nn.Linear(4 * cfg.dim, cfg.dim, bias=False),
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(torch.zeros(1, cfg.context, cfg.dim))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)
        self.head.weight = self.tok.weight

    def forward(self, tokens, targets):
        x = self.tok(tokens) + self.pos[:, : tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Trainer:
    def __init__(self, cfg, stream):
        self.cfg = cfg
        self.stream = stream
        self.model = GPT(cfg).to(cfg.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=cfg.lr, betas=(0.9, 0.95), fused=ON_GPU
        )
        self.offsets = torch.arange(cfg.context + 1, device=cfg.device)

    def next_batch(self):
        high = self.stream.numel() - self.cfg.context - 1
        start = torch.randint(high, (self.cfg.batch, 1), device=self.cfg.device)
        chunk = self.stream[start + self.offsets]
        return chunk[:, :-1], chunk[:, 1:]

    def set_lr(self, step):
        cfg = self.cfg
        warm = min(1.0, (step + 1) / cfg.warmup)
        decay = 0.5 * (1 + math.cos(math.pi * step / cfg.steps))
        for group in self.optimizer.param_groups:
            group["lr"] = cfg.lr * warm * decay

    def fit(self):
        for step in range(self.cfg.steps):
            self.set_lr(step)
            tokens, targets = self.next_batch()
            with torch.autocast(self.cfg.device, dtype=torch.bfloat16):
                loss = self.model(tokens, targets)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            if (step + 1) % 40 == 0:
                print(f"step {step + 1} loss {loss.item():.4f}")
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    config = Config()
    tokens = torch.randint(config.vocab, (4_000_000 if ON_GPU else 4000,), device=config.device)
    print(f"final loss {Trainer(config, tokens).fit():.4f}")
