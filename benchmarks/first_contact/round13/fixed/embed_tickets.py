"""Offline job: one embedding per support ticket, the mean over the tokens of a small causal model."""
import argparse
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
tiny = os.environ.get("TINY") == "1"
parser.add_argument("--tickets", type=int, default=64 if tiny else 32768)
parser.add_argument("--rows", type=int, default=8 if tiny else 128)
parser.add_argument("--longest", type=int, default=128 if tiny else 512)
parser.add_argument("--layers", type=int, default=2 if tiny else 10)
parser.add_argument("--dim", type=int, default=128 if tiny else 1024)
parser.add_argument("--vocab", type=int, default=1024 if tiny else 32768)
parser.add_argument("--procs", type=int, default=2 if tiny else 4)
args = parser.parse_args()
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = torch.bfloat16 if dev.type == "cuda" else torch.float32


class Tickets(Dataset):
    def __init__(self, count, longest, vocab):
        rng = np.random.default_rng(3)
        self.sizes = np.clip(rng.lognormal(4.3, 0.9, count).astype(np.int64), 8, longest)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.words = torch.from_numpy(rng.integers(1, vocab, self.starts[-1]))

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        return i, self.words[self.starts[i]:self.starts[i + 1]]


class ReadingPlan:
    """Which tickets go through the model together."""

    def __init__(self, sizes, rows):
        self.rows = rows
        self.queue = np.argsort(-sizes, kind="stable")

    def __len__(self):
        return len(self.queue) // self.rows

    def __iter__(self):
        for part in range(len(self)):
            yield self.queue[part * self.rows:(part + 1) * self.rows].tolist()


def stack(pairs):
    ids, texts = zip(*pairs)
    ends = torch.tensor([len(t) for t in texts])
    width = -(-int(ends.max()) // 64) * 64
    page = torch.zeros(len(texts), width, dtype=torch.long)
    for row, text in zip(page, texts):
        row[: len(text)] = text
    return torch.tensor(ids), page, ends - 1


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = dim // 64
        self.pre, self.mid = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.wide, self.narrow = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, h):
        q, k, v = (z.unflatten(-1, (self.heads, 64)).transpose(1, 2) for z in self.qkv(self.pre(h)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.proj(mixed.transpose(1, 2).flatten(2))
        return h + self.narrow(F.gelu(self.wide(self.mid(h))))


class Encoder(nn.Module):
    def __init__(self, vocab, dim, layers, longest):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        self.places = nn.Embedding(longest, dim)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(layers))
        self.register_buffer("ruler", torch.arange(longest), persistent=False)

    def forward(self, page, last):
        h = self.words(page) + self.places.weight[: page.shape[1]]
        for layer in self.layers:
            h = layer(h)
        real = self.ruler[: page.shape[1]] <= last[:, None]
        total = h.mul_(real.unsqueeze(2)).sum(1, dtype=torch.float32)
        return F.normalize(total, dim=-1)


torch.manual_seed(0)
model = Encoder(args.vocab, args.dim, args.layers, args.longest).to(dev, dtype).eval()
if not tiny:
    for layer in model.layers:
        layer.compile(dynamic=True)
tickets = Tickets(args.tickets, args.longest, args.vocab)
loader = DataLoader(tickets, batch_sampler=ReadingPlan(tickets.sizes, args.rows), collate_fn=stack,
                    num_workers=args.procs, pin_memory=dev.type == "cuda", prefetch_factor=4)
store = torch.zeros(args.tickets, args.dim, device=dev)
with torch.inference_mode():
    for ids, page, last in loader:
        ids, page, last = (z.to(dev, non_blocking=True) for z in (ids, page, last))
        store[ids] = model(page, last)
print(f"checksum {(store * torch.linspace(-1, 1, args.dim, device=dev)).sum(1).abs().mean().item():.5f}")
