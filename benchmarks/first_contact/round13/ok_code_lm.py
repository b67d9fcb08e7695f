"""Next-token language model over a synthetic bracket language, loader-fed."""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class GPTConfig:
    vocab: int = 8192
    context: int = 1024
    dim: int = 768
    layers: int = 8
    heads: int = 12
    batch: int = 64
    steps: int = 90
    workers: int = 4

    @classmethod
    def pick(cls):
        if os.environ.get("TINY") == "1":
            return cls(vocab=256, context=32, dim=64, layers=2, heads=4, batch=4, steps=6, workers=0)
        return cls()


class Windows(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(0)
        n = cfg.batch * cfg.steps * cfg.context // 4 + cfg.context + 1
        walk = np.cumsum(rng.integers(-3, 4, n))
        self.stream = torch.from_numpy((walk % cfg.vocab).astype(np.int64))
        self.cfg = cfg

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, i):
        lo = i * self.cfg.context // 4
        return self.stream[lo:lo + self.cfg.context + 1]


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.norm_a, self.norm_b = nn.RMSNorm(c.dim), nn.RMSNorm(c.dim)
        self.qkv, self.proj = nn.Linear(c.dim, 3 * c.dim, bias=False), nn.Linear(c.dim, c.dim, bias=False)
        self.up, self.down = nn.Linear(c.dim, 4 * c.dim, bias=False), nn.Linear(4 * c.dim, c.dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm_b(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.pos = nn.Embedding(c.vocab, c.dim), nn.Parameter(torch.randn(c.context, c.dim) * 0.02)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm, self.head = nn.RMSNorm(c.dim), nn.Linear(c.dim, c.vocab, bias=False)

    def forward(self, ids, target):
        x = self.tok(ids) + self.pos
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), target.flatten())


def main():
    cfg = GPTConfig.pick()
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = GPT(cfg).to(device)
    step_loss = torch.compile(model) if gpu else model
    decay = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                            lr=3e-4, fused=gpu)
    loader = DataLoader(Windows(cfg), batch_size=cfg.batch, shuffle=True, drop_last=True, num_workers=cfg.workers,
                        pin_memory=gpu, persistent_workers=cfg.workers > 0, generator=torch.Generator().manual_seed(0))
    losses = torch.zeros(cfg.steps, device=device)
    for i, window in enumerate(loader):
        window = window.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            loss = step_loss(window[:, :-1], window[:, 1:])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        losses[i] = loss.detach()
    print(f"{losses[0].item():.4f} -> {losses[-1].item():.4f}")


if __name__ == "__main__":
    main()
