"""Decoder-only language model on token shards, cosine schedule, clipping."""
import math
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


@dataclass
class GPTConfig:
    vocab: int = 32768
    ctx: int = 1024
    dim: int = 1024
    heads: int = 16
    layers: int = 8
    batch: int = 24
    steps: int = 220
    lr: float = 3e-4
    warmup: int = 20
    workers: int = 4


TINY = os.environ.get("TINY") == "1"
C = GPTConfig(vocab=256, ctx=32, dim=64, heads=1, layers=2, batch=4, steps=4, workers=1) if TINY else GPTConfig()
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Shards(IterableDataset):
    """Each worker yields whole batches, cut from its own stream of a Markov-like source."""

    def __iter__(self):
        info = get_worker_info()
        part, parts = (info.id, info.num_workers) if info else (0, 1)
        rng = np.random.default_rng(part)
        for _ in range(part, C.steps, parts):
            start = rng.integers(0, C.vocab, (C.batch, 1))
            jumps = rng.integers(1, 4, (C.batch, C.ctx)).cumsum(1)
            yield torch.from_numpy(np.concatenate([start, (start + jumps * 17) % C.vocab], 1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(C.dim), nn.RMSNorm(C.dim)
        self.qkv = nn.Linear(C.dim, 3 * C.dim, bias=False)
        self.proj = nn.Linear(C.dim, C.dim, bias=False)
        self.fc = nn.Linear(C.dim, 4 * C.dim, bias=False)
        self.back = nn.Linear(4 * C.dim, C.dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, C.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.back(F.gelu(self.fc(self.n2(x)), approximate="tanh"))


class LossHead(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.norm, self.table = nn.RMSNorm(C.dim), table

    def forward(self, x, target):
        logits = F.linear(self.norm(x), self.table.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), target.flatten())


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(C.vocab, C.dim)
        self.pos = nn.Parameter(torch.zeros(C.ctx, C.dim))
        self.blocks = nn.ModuleList(Block() for _ in range(C.layers))
        self.loss = LossHead(self.tok)
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tok(ids[:, :-1]) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.loss(x, ids[:, 1:])


def rate(step):
    if step < C.warmup:
        return C.lr * (step + 1) / C.warmup
    return C.lr * 0.5 * (1 + math.cos(math.pi * (step - C.warmup) / max(C.steps - C.warmup, 1)))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = GPT().to(DEV)
    if not TINY:
        for part in [*model.blocks, model.loss]:
            part.compile()
    decayed = [p for p in model.parameters() if p.ndim == 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    opt = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                            lr=C.lr, betas=(0.9, 0.95), fused=True)
    loader = DataLoader(Shards(), batch_size=None, num_workers=C.workers, pin_memory=DEV.type == "cuda")
    shown = torch.zeros((), device=DEV)
    for step, ids in enumerate(loader):
        for group in opt.param_groups:
            group["lr"] = rate(step)
        ids = ids.to(DEV, non_blocking=True)
        with torch.autocast(DEV.type, torch.bfloat16, enabled=DEV.type == "cuda"):
            loss = model(ids)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        opt.step()
        opt.zero_grad(set_to_none=True)
        shown.lerp_(loss.detach(), 0.1)
        if step % 50 == 49:
            print(f"step {step + 1} loss {shown.item():.4f}")
    print(f"final {shown.item():.4f}")


if __name__ == "__main__":
    main()
