"""
Classify protein sequences into families with a plain Accelerate loop.

    accelerate launch protein_families.py --epochs 2
"""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

SMALL = os.environ.get("SMALL", "0") == "1"


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class FamilyNet(nn.Module):
    def __init__(self, residues, families, dim, depth, heads, length):
        super().__init__()
        self.embed = nn.Embedding(residues, dim)
        self.position = nn.Parameter(torch.randn(length, dim) * 0.02)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.classify = nn.Linear(dim, families)

    def forward(self, ids):
        x = self.embed(ids) + self.position
        for block in self.blocks:
            x = block(x)
        return self.classify(self.norm(x.mean(1)))


def sequences(n, length, families):
    g = torch.Generator().manual_seed(1)
    labels = torch.randint(families, (n,), generator=g)
    motifs = torch.randint(25, (families, length), generator=g)
    ids = torch.where(torch.rand(n, length, generator=g) < 0.4, motifs[labels], torch.randint(25, (n, length), generator=g))
    return TensorDataset(ids, labels)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch_size", type=int, default=4 if SMALL else 128)
    p.add_argument("--length", type=int, default=32 if SMALL else 256)
    p.add_argument("--dim", type=int, default=32 if SMALL else 768)
    p.add_argument("--depth", type=int, default=2 if SMALL else 6)
    p.add_argument("--steps_per_epoch", type=int, default=15 if SMALL else 60)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--report_every", type=int, default=20)
    return p.parse_args()


def main():
    args = parse_args()
    set_seed(42)
    on_gpu = torch.cuda.is_available()
    accelerator = Accelerator(
        mixed_precision="bf16" if on_gpu else "no",
        dynamo_backend="inductor" if on_gpu else "no",
        dataloader_config=DataLoaderConfiguration(non_blocking=True),
    )
    data = sequences(args.batch_size * args.steps_per_epoch, args.length, families=200)
    loader = DataLoader(
        data, args.batch_size, shuffle=True, drop_last=True, pin_memory=on_gpu,
        num_workers=0 if SMALL else 4, persistent_workers=not SMALL,
    )
    model = FamilyNet(32, 200, args.dim, args.depth, max(1, args.dim // 64), args.length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05, fused=on_gpu)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * args.steps_per_epoch)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    seen = 0
    for epoch in range(args.epochs):
        model.train()
        running = torch.zeros((), device=accelerator.device)
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids).float(), labels, label_smoothing=0.1)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            running += loss.detach()
            seen += 1
            if seen % args.report_every == 0:
                accelerator.print(f"epoch {epoch} step {seen} loss {running.item() / args.report_every:.4f}")
                running.zero_()
    accelerator.end_training()


if __name__ == "__main__":
    main()
