"""Train a compact GPT on a packed token file, read by worker processes as windows."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
VOCAB, WIDTH, DEPTH, HEADS = (32768, 1024, 8, 16) if CUDA else (256, 32, 2, 2)
WINDOW, BATCH, STEPS, WARMUP = (1024, 16, 110, 20) if CUDA else (32, 4, 8, 2)
PEAK_LR = 3e-4


class PackedWindows(Dataset):
    def __init__(self, tokens, window):
        self.tokens, self.window = tokens, window

    def __len__(self):
        return (len(self.tokens) - 1) // self.window

    def __getitem__(self, i):
        lo = i * self.window
        return torch.from_numpy(self.tokens[lo : lo + self.window + 1].astype(np.int64))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_attn, self.ln_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.attn_out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.fc_out = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_attn(x)).view(b, t, 3, HEADS, c // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.fc_out(F.gelu(self.fc(self.ln_mlp(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def learning_rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    progress = (step - WARMUP) / max(1, STEPS - WARMUP)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, VOCAB, STEPS * BATCH * WINDOW + 1, dtype=np.uint16)
    workers = 4 if CUDA else 0
    loader = DataLoader(
        PackedWindows(tokens, WINDOW),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        pin_memory=CUDA,
        persistent_workers=workers > 0,
        prefetch_factor=4 if workers else None,
    )
    with DEVICE:
        model = GPT()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=PEAK_LR, betas=(0.9, 0.95), weight_decay=0.1, fused=CUDA
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)
    for step, rows in enumerate(loader, 1):
        rows = rows.to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            logits = model(rows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"done, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
