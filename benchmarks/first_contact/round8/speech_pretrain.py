"""Masked prediction on raw speech: loader with workers, patch embedding, transformer, codebook targets."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.backends.cuda.matmul.allow_tf32 = True


class Speech(Dataset):
    def __init__(self, hours_of, items, samples, patch, codes):
        rng = np.random.default_rng(0)
        self.audio = rng.standard_normal(hours_of, dtype=np.float32)
        self.codes = rng.integers(0, codes, hours_of // patch)
        self.items, self.samples, self.patch = items, samples, patch

    def __len__(self):
        return self.items

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        frames = self.samples // self.patch
        start = int(rng.integers(0, len(self.codes) - frames))
        a = start * self.patch
        wave = torch.from_numpy(self.audio[a : a + self.samples])
        code = torch.from_numpy(self.codes[start : start + frames])
        return wave.view(frames, self.patch), code


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(a)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class MaskedSpeechModel(nn.Module):
    def __init__(self, patch, frames, d, depth, heads, codes):
        super().__init__()
        self.inp = nn.Linear(patch, d)
        self.mask_token = nn.Parameter(0.02 * torch.randn(d))
        self.pos = nn.Parameter(0.02 * torch.randn(frames, d))
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, codes)

    def forward(self, x, mask):
        h = self.inp(x)
        h = torch.where(mask, self.mask_token.to(h.dtype), h) + self.pos
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=64 if cuda else 2)
    ap.add_argument("--frames", type=int, default=400 if cuda else 8)
    ap.add_argument("--patch", type=int, default=320 if cuda else 32)
    ap.add_argument("--dim", type=int, default=768 if cuda else 32)
    ap.add_argument("--depth", type=int, default=8 if cuda else 1)
    ap.add_argument("--codes", type=int, default=512 if cuda else 32)
    ap.add_argument("--steps", type=int, default=150 if cuda else 4)
    args = ap.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    samples = args.frames * args.patch
    data = Speech(200 * samples, args.batch * args.steps, samples, args.patch, args.codes)
    loader = DataLoader(
        data,
        batch_size=args.batch,
        shuffle=True,
        drop_last=True,
        num_workers=10 if cuda else 0,
        pin_memory=cuda,
        persistent_workers=cuda,
        prefetch_factor=2 if cuda else None,
    )
    model = MaskedSpeechModel(args.patch, args.frames, args.dim, args.depth, args.dim // 64 or 2, args.codes).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=cuda)
    for step, (wave, code) in enumerate(loader):
        wave = wave.to(device, non_blocking=True)
        code = code.to(device, non_blocking=True)
        mask = torch.rand(code.shape, device=device) < 0.5
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(wave, mask.unsqueeze(-1))
            loss = F.cross_entropy(logits.flatten(0, 1), code.masked_fill(~mask, -100).flatten(), ignore_index=-100)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
