"""Regression of essay scores with a long-input encoder."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Sublayer(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, dim * 4), nn.Linear(dim * 4, dim)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        rate = self.dropout if self.training else 0.0
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, dropout_p=rate).transpose(1, 2).flatten(2))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Grader(nn.Module):
    def __init__(self, vocab: int, dim: int, depth: int, heads: int, length: int):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.zeros(length, dim))
        self.encoder = nn.ModuleList(Sublayer(dim, heads, 0.0) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.traits = nn.Linear(dim, 8)

    def run(self, x):
        for sub in self.encoder:
            x = checkpoint(sub, x, use_reentrant=False) if self.training else sub(x)  # flaw: needless-checkpointing
        return x

    def forward(self, ids):
        x = self.run(self.tokens(ids) + self.position)
        return self.traits(self.norm(x).mean(dim=1))


def main(argv=None):
    small = os.environ.get("SMALL") == "1"
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=32 if small else 768)
    ap.add_argument("--depth", type=int, default=2 if small else 10)
    ap.add_argument("--heads", type=int, default=2 if small else 12)
    ap.add_argument("--length", type=int, default=32 if small else 1024)
    ap.add_argument("--batch", type=int, default=2 if small else 8)
    ap.add_argument("--vocab", type=int, default=128 if small else 4096)
    ap.add_argument("--steps", type=int, default=30 if small else 80)
    args = ap.parse_args(argv)

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Grader(args.vocab, args.dim, args.depth, args.heads, args.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    essays = torch.randint(args.vocab, (args.batch * 12, args.length), device=device)
    grades = torch.rand(args.batch * 12, 8, device=device) * 6

    model.train()
    mean = torch.zeros((), device=device)
    for step in range(1, args.steps + 1):
        pick = torch.randint(len(essays), (args.batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(essays[pick])
        loss = F.mse_loss(predicted.float(), grades[pick])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        cosine.step()
        mean.lerp_(loss.detach(), 0.1)
        if step % 40 == 0:
            print(f"{step}/{args.steps}: {mean.item():.3f}")


if __name__ == "__main__":
    main()
