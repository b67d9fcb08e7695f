#!/usr/bin/env python
"""Rhythm classification of 12-lead ECGs (patch transformer), resampled and perturbed on the fly."""
import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=64 if CUDA else 4)
    ap.add_argument("--samples", type=int, default=4096 if CUDA else 256)
    ap.add_argument("--dim", type=int, default=512 if CUDA else 32)
    ap.add_argument("--depth", type=int, default=10 if CUDA else 1)
    ap.add_argument("--steps", type=int, default=130 if CUDA else 3)
    ap.add_argument("-j", "--workers", type=int, default=min(14, os.cpu_count()))
    ap.add_argument("--lr", type=float, default=3e-4)
    return ap.parse_args()


class Recordings(Dataset):
    LEADS, CLASSES = 12, 9

    def __init__(self, n, samples):
        self.n, self.samples = n, samples
        t = np.linspace(0, 40 * np.pi, 2 * samples, dtype=np.float32)
        phases = np.arange(self.LEADS, dtype=np.float32)[:, None]
        self.templates = [np.sin((c + 1) * 0.3 * t + phases) ** 3 for c in range(self.CLASSES)]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        label = i % self.CLASSES
        source = self.templates[label]
        speed = rng.uniform(0.8, 1.2)  # heart-rate change by resampling
        where = rng.uniform(0, self.samples * 0.5) + speed * np.arange(self.samples)
        grid = np.arange(source.shape[1])
        x = np.stack([np.interp(where, grid, lead) for lead in source])
        x += 0.1 * rng.standard_normal(x.shape)
        drift = 0.2 * np.sin(np.linspace(0, rng.uniform(1, 6), self.samples))
        x = (x + drift - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-6)
        return torch.from_numpy(x.astype(np.float32)), label


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.gate_up, self.down = nn.Linear(dim, 6 * dim, bias=False), nn.Linear(3 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for t in self.qkv(self.norms[0](x)).chunk(3, dim=-1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class EcgTransformer(nn.Module):
    def __init__(self, samples, dim, depth, patch=16):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(Recordings.LEADS * patch, dim)
        self.pos = nn.Parameter(torch.randn(samples // patch, dim) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(dim, max(1, dim // 64)) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 16))  # 9 classes, padded

    def forward(self, x):
        x = x.unflatten(-1, (-1, self.patch)).transpose(1, 2).flatten(2)
        x = self.embed(x) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def main():
    args = get_args()
    device = "cuda" if CUDA else "cpu"
    torch.manual_seed(0)
    model = EcgTransformer(args.samples, args.dim, args.depth).to(device)
    if CUDA:
        for layer in model.layers:
            layer.compile()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05, fused=True)
    data = Recordings(args.batch * args.steps, args.samples)
    loader = DataLoader(data, args.batch, num_workers=args.workers, pin_memory=CUDA, drop_last=True)
    begin, total = time.time(), torch.zeros((), device=device)
    for step, (x, y) in enumerate(loader, 1):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        if step % 50 == 0:
            print(f"{step}/{len(loader)}  {total.item() / step:.4f}  {time.time() - begin:.1f} s")
    print(f"average loss {total.item() / len(loader):.4f} ({os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
