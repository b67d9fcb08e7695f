"""Supervised fine-tuning on dialogues: only the reply's tokens count in the loss."""
import argparse
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class DialogueModel(nn.Module):
    def __init__(self, vocab, dim, depth, heads, length):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(length, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.RMSNorm(dim)
        nn.init.normal_(self.tok.weight, std=0.02)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[: ids.shape[1]]
        return F.linear(self.norm(self.blocks(x)), self.tok.weight)


def groups(model, decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def main():
    small = os.environ.get("SMALL") == "1"
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30 if small else 80)
    ap.add_argument("--lr", type=float, default=1e-4)
    ap.add_argument("--warmup", type=int, default=10)
    args = ap.parse_args()
    vocab, dim, depth, heads, length, batch = (128, 32, 2, 2, 32, 2) if small else (8192, 1024, 8, 16, 1024, 12)

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = DialogueModel(vocab, dim, depth, heads, length).to(device)
    optimizer = torch.optim.AdamW(groups(model, 0.1), lr=args.lr, betas=(0.9, 0.95), fused=True)

    def factor(step):
        if step < args.warmup:
            return (step + 1) / args.warmup
        return 0.5 * (1 + math.cos(math.pi * (step - args.warmup) / max(1, args.steps - args.warmup)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    talks = torch.randint(vocab, (batch * 16, length + 1), device=device)
    prompts = torch.randint(length // 8, length // 4, (batch * 16, 1), device=device)
    column = torch.arange(length, device=device)
    for step in range(args.steps):
        pick = torch.randint(len(talks), (batch,), device=device)
        ids = talks[pick]
        target = ids[:, 1:].masked_fill(column < prompts[pick], -100)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if (step + 1) % 40 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
