"""Trains a vision transformer on (synthetic) leaf photographs."""

import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    side: int = 160
    patch: int = 16
    dim: int = 512
    depth: int = 6
    classes: int = 128
    batch: int = 192
    steps: int = 80
    workers: int = 12
    lr: float = 3e-4


class Leaves(Dataset):
    def __init__(self, cfg: Config):
        gen = torch.Generator().manual_seed(0)
        self.photos = torch.randint(0, 256, (512, 3, cfg.side, cfg.side), dtype=torch.uint8, generator=gen)
        self.species = torch.randint(0, cfg.classes, (512,), generator=gen)
        self.length = cfg.batch * cfg.steps

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        j = i % len(self.photos)
        return self.photos[j], self.species[j]


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.patch = nn.Conv2d(3, cfg.dim, cfg.patch, cfg.patch)
        self.pos = nn.Parameter(torch.randn((cfg.side // cfg.patch) ** 2, cfg.dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(cfg.dim) for _ in range(cfg.depth)])
        self.norm, self.head = nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.classes)

    def forward(self, photos):
        x = self.patch(photos / 127.5 - 1).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.norm(self.blocks(x)).mean(1))


def main():
    cfg = Config()
    if os.environ.get("SMALL"):
        cfg = Config(side=16, patch=8, dim=32, depth=1, classes=8, batch=4, steps=30, workers=2)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    net = ViT(cfg).to(device)
    opt = torch.optim.AdamW(net.parameters(), cfg.lr, weight_decay=0.05, fused=True)
    model = torch.compile(net, disable=not cuda)
    loader = DataLoader(Leaves(cfg), cfg.batch, num_workers=cfg.workers, pin_memory=cuda, prefetch_factor=4)
    losses = torch.zeros(cfg.steps, device=device)
    for step, (photos, species) in enumerate(loader):
        photos = photos.to(device, non_blocking=True)
        species = species.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16):
            loss = F.cross_entropy(model(photos), species, label_smoothing=0.1)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses[step] = loss.detach()
    print("first and last ten:", losses[:10].mean().item(), losses[-10:].mean().item())


if __name__ == "__main__":
    main()
