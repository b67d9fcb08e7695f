"""Next-event model over user sessions of very different length."""
import argparse
import os
import time
from dataclasses import dataclass
from typing import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

tiny = os.environ.get("TINY") == "1"
ap = argparse.ArgumentParser()
ap.add_argument("--sessions", type=int, default=256 if tiny else 9600)
ap.add_argument("--context", type=int, default=128 if tiny else 512)
ap.add_argument("--events", type=int, default=128 if tiny else 8192)
ap.add_argument("--dim", type=int, default=64 if tiny else 512)
ap.add_argument("--layers", type=int, default=1 if tiny else 6)
ap.add_argument("--batch", type=int, default=16 if tiny else 192)
ap.add_argument("--epochs", type=int, default=4)
ap.add_argument("--workers", type=int, default=0 if tiny else 4)
IGNORE = -100


class Sessions(Dataset):
    def __init__(self, count, context, events):
        g = torch.Generator().manual_seed(2)
        raw = torch.exp(torch.randn(count, generator=g) * 0.6) * context * 0.22
        self.length = raw.long().clamp(8, context)
        self.stream = torch.randint(1, events, (int(self.length.sum()),), generator=g)
        self.offset = torch.cumsum(self.length, 0) - self.length

    def __len__(self):
        return len(self.length)

    def __getitem__(self, i):
        return self.stream[self.offset[i]:self.offset[i] + self.length[i]]


class SimilarLengths(Sampler):
    """Batches of neighbours in length, in random order."""

    def __init__(self, lengths, batch):
        self.batches = torch.argsort(lengths, stable=True).split(batch)
        self.gen = torch.Generator().manual_seed(7)

    def __len__(self):
        return len(self.batches)

    def __iter__(self) -> Iterator[list]:
        for k in torch.randperm(len(self.batches), generator=self.gen).tolist():
            yield self.batches[k].tolist()


@dataclass
class Collate:
    context: int
    multiple: int = 64

    def width(self, rows):
        return self.context  # flaw: padded-batches

    def __call__(self, rows):
        width = self.width(rows)
        inputs = torch.zeros(len(rows), width, dtype=torch.int64)
        labels = torch.full((len(rows), width), IGNORE)
        for k, row in enumerate(rows):
            inputs[k, :len(row)] = row
            labels[k, :len(row) - 1] = row[1:]
        return inputs, labels


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = dim // 64
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, 64)).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class NextEvent(nn.Module):
    def __init__(self, events, dim, layers, context):
        super().__init__()
        self.token, self.place = nn.Embedding(events, dim), nn.Embedding(context, dim)
        self.blocks = nn.Sequential(*(Block(dim) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, events, bias=False)
        self.register_buffer("index", torch.arange(context), persistent=False)

    def forward(self, ids, labels):
        x = self.token(ids) + self.place(self.index[:ids.shape[1]])
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device.type == "cuda"
    torch.manual_seed(0)
    data = Sessions(args.sessions, args.context, args.events)
    loader = DataLoader(data, batch_sampler=SimilarLengths(data.length, args.batch),
                        collate_fn=Collate(args.context), num_workers=args.workers,
                        persistent_workers=args.workers > 0, pin_memory=gpu)
    model = NextEvent(args.events, args.dim, args.layers, args.context).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=gpu)
    t0 = time.time()
    for epoch in range(args.epochs):
        tally = torch.zeros((), device=device)
        for ids, labels in loader:
            ids, labels = ids.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
                loss = model(ids, labels)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            tally += loss.detach()
        print(f"[{epoch}] nll {tally.item() / len(loader):.4f}  {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main(ap.parse_args())
