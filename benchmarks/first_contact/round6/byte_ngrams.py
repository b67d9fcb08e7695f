import os
import typing as t

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

small = bool(int(os.environ.get("SMALL", "0") or 0))
dev = "cuda" if torch.cuda.is_available() else "cpu"


class Hyper(t.NamedTuple):
    length: int = 64 if small else 1024
    buckets: int = 512 if small else 65536
    dim: int = 32 if small else 512
    layers: int = 1 if small else 2
    order: int = 8
    batch: int = 4 if small else 32
    steps: int = 30 if small else 200


class ByteStream(IterableDataset):
    """Raw bytes together with the hash bucket of the n-gram that ends at each byte."""

    def __init__(self, hp: Hyper):
        self.hp = hp

    def buckets_of(self, raw: np.ndarray) -> np.ndarray:
        n = self.hp.order
        padded = np.concatenate([np.zeros(n - 1, np.int64), raw])
        powers = [31 ** (n - 1 - k) for k in range(n)]
        sums = np.array([sum(int(padded[i + k]) * p for k, p in enumerate(powers)) for i in range(len(raw))])  # flaw: slow-sample-line
        return sums % self.hp.buckets

    def __iter__(self):
        info = get_worker_info()
        share, seed = (info.num_workers, info.id) if info else (1, 0)
        rng = np.random.default_rng(seed)
        for _ in range(self.hp.steps * self.hp.batch // share):
            raw = rng.integers(0, 256, self.hp.length + 1, dtype=np.int64)
            yield raw[:-1], self.buckets_of(raw[:-1]), raw[1:]


class CausalBlock(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.ln_a = nn.LayerNorm(d)
        self.ln_b = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, d = x.shape
        q, k, v = (z.view(b, n, -1, 32).transpose(1, 2) for z in self.qkv(self.ln_a(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.ln_b(x))


class ByteLM(nn.Module):
    def __init__(self, hp: Hyper):
        super().__init__()
        self.byte = nn.Embedding(256, hp.dim)
        self.gram = nn.Embedding(hp.buckets, hp.dim)
        self.trunk = nn.Sequential(*(CausalBlock(hp.dim) for _ in range(hp.layers)), nn.LayerNorm(hp.dim))
        self.out = nn.Linear(hp.dim, 256)

    def forward(self, raw, grams):
        return self.out(self.trunk(self.byte(raw) + self.gram(grams)))


def fit(hp: Hyper) -> None:
    torch.manual_seed(0)
    model = ByteLM(hp).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    loader = DataLoader(
        ByteStream(hp), batch_size=hp.batch, num_workers=1 if small else 4, pin_memory=dev == "cuda", drop_last=True
    )
    for i, batch in enumerate(loader):
        raw, grams, target = (z.to(dev, non_blocking=True) for z in batch)
        with torch.autocast(dev, torch.bfloat16):
            logits = model(raw, grams)
            loss = F.cross_entropy(logits.view(-1, 256), target.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 40 == 0:
            print(i, f"bits per byte {loss.item() / 0.6931:.3f}")


if __name__ == "__main__":
    fit(Hyper())
