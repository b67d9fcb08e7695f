"""Masked-frame pretraining of a speech encoder: predict the cluster of every masked frame."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


@dataclass(frozen=True)
class Config:
    frames: int = 512 if CUDA else 32
    mels: int = 80
    width: int = 768 if CUDA else 32
    depth: int = 8 if CUDA else 1
    clusters: int = 512 if CUDA else 16
    batch: int = 48 if CUDA else 2
    steps: int = 150 if CUDA else 4
    workers: int = 8 if CUDA else 0


class Crops(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(0)
        total = 150_000 if CUDA else 2000
        self.features = torch.from_numpy(rng.standard_normal((total, cfg.mels), dtype=np.float32))
        self.labels = torch.from_numpy(rng.integers(0, cfg.clusters, total))
        self.cfg = cfg

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, i):
        start = (i * 104729) % (len(self.features) - self.cfg.frames)
        span = slice(start, start + self.cfg.frames)
        return self.features[span], self.labels[span]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = max(1, width // 64)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.norm2(x))


class MaskedEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Linear(cfg.mels, cfg.width)
        self.pos = nn.Parameter(torch.randn(cfg.frames, cfg.width) * 0.02)
        self.mask_token = nn.Parameter(torch.zeros(cfg.width))
        self.blocks = nn.Sequential(*[Block(cfg.width) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(cfg.width)
        self.clusters = nn.Linear(cfg.width, cfg.clusters)

    def forward(self, feats, masked):
        x = torch.where(masked[..., None], self.mask_token.to(torch.bfloat16), self.inp(feats))
        return self.clusters(self.norm(self.blocks(x + self.pos)))


def span_mask(batch, frames, device, span=8, rate=0.06):
    seeds = (torch.rand(batch, 1, frames, device=device) < rate).float()
    return F.max_pool1d(seeds, span, stride=1, padding=span // 2)[:, 0, :frames] > 0


def main(cfg=Config()):
    device = torch.device("cuda" if CUDA else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(Crops(cfg), cfg.batch, drop_last=True, num_workers=cfg.workers,
                        pin_memory=CUDA, persistent_workers=cfg.workers > 0)
    model = MaskedEncoder(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=CUDA)
    running = torch.zeros((), device=device)
    for step, (feats, labels) in enumerate(loader, 1):
        feats, labels = feats.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        masked = span_mask(*labels.shape, device)
        target = labels.masked_fill(~masked, -100)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(feats, masked)
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        running.lerp_(loss.detach(), 0.05)
        if step % 50 == 0 or step == cfg.steps:
            print(f"step {step} loss {running.item():.4f}")


if __name__ == "__main__":
    main()
