"""Keyword spotting: noisy one-second clips mixed on the fly, log-spectrogram transformer classifier."""
import argparse

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

RATE = 16000
WIN, HOP = 512, 160


class Clips(Dataset):
    def __init__(self, n, classes, seed=0):
        rng = np.random.default_rng(seed)
        self.n, self.classes, self.seed = n, classes, seed
        self.words = rng.standard_normal((classes, RATE), dtype=np.float32)
        self.noise = rng.standard_normal(20 * RATE, dtype=np.float32)
        self.window = np.hanning(WIN).astype(np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng((self.seed, i))
        label = int(rng.integers(self.classes))
        shift = int(rng.integers(-1600, 1600))
        start = int(rng.integers(0, len(self.noise) - RATE))
        snr = rng.uniform(0.2, 1.0)
        wave = np.roll(self.words[label], shift) + snr * self.noise[start : start + RATE]
        frames = np.lib.stride_tricks.sliding_window_view(wave, WIN)[::HOP] * self.window
        spec = np.abs(np.fft.rfft(frames, axis=1)[:, 1:])
        return np.log(spec + 1e-5).astype(np.float32), label


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Spotter(nn.Module):
    def __init__(self, classes, d, depth, heads):
        super().__init__()
        self.inp = nn.Linear(WIN // 2, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.inp(x))).mean(1))


def parse():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=64 if cuda else 4)
    ap.add_argument("--classes", type=int, default=32)
    ap.add_argument("--clips", type=int, default=6400 if cuda else 16)
    ap.add_argument("--epochs", type=int, default=1)
    ap.add_argument("--dim", type=int, default=1024 if cuda else 32)
    ap.add_argument("--depth", type=int, default=8 if cuda else 1)
    return ap.parse_args()


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    train_set = Clips(args.clips, args.classes)
    loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        pin_memory=True,
        drop_last=True,
        num_workers=14 if device.type == "cuda" else 0,
        persistent_workers=device.type == "cuda",
    )
    model = Spotter(args.classes, args.dim, args.depth, max(args.dim // 64, 2)).to(device)
    optim = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=device.type == "cuda")
    right = torch.zeros((), device=device)
    seen = 0
    for epoch in range(args.epochs):
        for it, (spec, label) in enumerate(loader):
            spec = spec.to(device, non_blocking=True)
            label = label.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(spec)
                loss = F.cross_entropy(logits, label)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            optim.step()
            right += (logits.detach().argmax(1) == label).sum()
            seen += len(label)
            if it % 25 == 0:
                print(f"[{epoch}:{it}] loss {loss.item():.4f} acc {right.item() / seen:.3f}")


if __name__ == "__main__":
    main(parse())
