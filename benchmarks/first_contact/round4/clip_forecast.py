"""Autoregressive model over the codes of video clips."""
import os
from dataclasses import dataclass, field

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class ClipConfig:
    codes: int = 2048
    frames: int = 16
    per_frame: int = 128
    dim: int = 768
    heads: int = 12
    depth: int = 4
    batch: int = 6
    steps: int = 70
    betas: tuple = field(default=(0.9, 0.95))

    @property
    def length(self):
        return self.frames * self.per_frame


class Mixer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.norm = nn.LayerNorm(cfg.dim)
        self.inp = nn.Linear(cfg.dim, cfg.dim * 3, bias=False)
        self.out = nn.Linear(cfg.dim, cfg.dim, bias=False)
        visible = torch.ones(cfg.length, cfg.length, dtype=torch.bool).tril()  # flaw: slow-attention-kernel
        self.register_buffer("visible", visible, persistent=False)  # flaw: slow-attention-kernel

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.inp(self.norm(x)).view(b, n, 3, self.cfg.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.visible)  # flaw: slow-attention-kernel
        return x + self.out(y.transpose(1, 2).reshape(b, n, d))


class Feed(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, 4 * cfg.dim), nn.GELU(), nn.Linear(4 * cfg.dim, cfg.dim))

    def forward(self, x):
        return x + self.net(x)


class ClipModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.code = nn.Embedding(cfg.codes, cfg.dim)
        self.frame = nn.Parameter(torch.randn(cfg.frames, 1, cfg.dim) * 0.02)
        self.place = nn.Parameter(torch.randn(1, cfg.per_frame, cfg.dim) * 0.02)
        self.stack = nn.Sequential(*(m(cfg) for _ in range(cfg.depth) for m in (Mixer, Feed)))
        self.head = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.codes, bias=False))

    def forward(self, ids):
        x = self.code(ids) + (self.frame + self.place).flatten(0, 1)
        return self.head(self.stack(x))


def train(cfg: ClipConfig):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = ClipModel(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=cfg.betas, fused=device.type == "cuda")
    clips = torch.randint(cfg.codes, (cfg.batch * 8, cfg.length + 1), device=device)
    for step in range(cfg.steps):
        rows = clips[step % 8 * cfg.batch:][:cfg.batch]
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(rows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    cfg = ClipConfig()
    if os.environ.get("SMALL"):
        cfg = ClipConfig(codes=64, frames=2, per_frame=8, dim=32, heads=2, depth=1, batch=2, steps=30)
    train(cfg)
