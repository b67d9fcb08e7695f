"""Vision transformer on bird photographs that a data loader crops and mirrors."""

import argparse
import itertools

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Birds(Dataset):
    def __init__(self, photos, side, crop, classes):
        rng = np.random.default_rng(0)
        self.pixels = torch.from_numpy(rng.integers(0, 256, (photos, 3, side, side), dtype=np.uint8))
        self.kinds = torch.from_numpy(rng.integers(0, classes, photos))
        self.crop = crop

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        span = self.pixels.shape[-1] - self.crop + 1
        top, left, mirror = torch.randint(span, (3,)).tolist()
        photo = self.pixels[i, :, top : top + self.crop, left : left + self.crop]
        return (photo.flip(-1) if mirror % 2 else photo), self.kinds[i]


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, image, patch, dim, depth, heads, classes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.position = nn.Parameter(torch.randn((image // patch) ** 2, dim) * 0.02)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, pixels):
        b, c, h, w = pixels.shape
        p = self.patch
        x = pixels.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
        x = self.embed(x.to(torch.bfloat16).div_(127.5).sub_(1)) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


def main():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=int, default=3000 if cuda else 16)
    parser.add_argument("--image", type=int, default=224 if cuda else 32)
    parser.add_argument("--dim", type=int, default=768 if cuda else 32)
    parser.add_argument("--depth", type=int, default=12 if cuda else 2)
    parser.add_argument("--batch", type=int, default=128 if cuda else 4)
    parser.add_argument("--steps", type=int, default=100 if cuda else 3)
    parser.add_argument("--workers", type=int, default=8 if cuda else 0)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if cuda else "cpu")
    birds = Birds(args.photos, args.image + 32, args.image, 200)
    loader = DataLoader(
        birds, args.batch, shuffle=True, drop_last=True, num_workers=args.workers, pin_memory=cuda, persistent_workers=args.workers > 0
    )
    model = ViT(args.image, 16, args.dim, args.depth, max(1, args.dim // 64), 200).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05, fused=cuda)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-4, total_steps=args.steps + 1)
    endless = itertools.chain.from_iterable(itertools.repeat(loader))
    recent = torch.zeros((), device=device)
    for step, (pixels, kinds) in enumerate(itertools.islice(endless, args.steps), 1):
        pixels, kinds = pixels.to(device, non_blocking=True), kinds.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(pixels), kinds, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        recent += loss.detach()
        if step % 50 == 0:
            print(f"step {step}: loss {recent.item() / 50:.4f}")
            recent.zero_()


if __name__ == "__main__":
    main()
