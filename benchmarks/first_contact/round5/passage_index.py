"""Embed a corpus with a bi-encoder, keep vectors on the device, answer queries by exact search."""
import argparse
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class EncoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class BiEncoder(nn.Module):
    def __init__(self, vocab, d, h, layers, length):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.randn(length, d) * 0.02)
        self.layers = nn.Sequential(*[EncoderLayer(d, h) for _ in range(layers)])
        self.norm = nn.LayerNorm(d)

    def forward(self, ids):
        x = self.layers(self.tok(ids) + self.pos)
        return F.normalize(self.norm(x[:, 0]), dim=-1)


class FlatIndex:
    def __init__(self, capacity, d, like):
        self.vectors = torch.empty(capacity, d, device=like.device, dtype=like.dtype)
        self.used = 0

    def add(self, block):
        self.vectors[self.used:self.used + len(block)] = block
        self.used += len(block)

    def search(self, queries, k):
        return (queries @ self.vectors[:self.used].t()).topk(k, dim=1)


@torch.inference_mode()
def main(o):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = BiEncoder(o.vocab, o.dim, o.heads, o.layers, o.length).to(device).eval()
    if device == "cuda":
        model = model.to(torch.bfloat16)
    index = FlatIndex(o.batch * o.batches, o.dim, model.pos)
    pages = torch.randint(o.vocab, (4, o.batch, o.length), device=device)
    began = time.perf_counter()
    for n in range(o.batches):
        index.add(model(pages[n % 4]))
        if (n + 1) % 30 == 0:
            print("queued", n + 1, "batches")
    if device == "cuda":
        torch.cuda.synchronize()
    print(f"indexed {index.used} passages in {time.perf_counter() - began:.2f}s")
    hits = index.search(model(pages[0][:16]), 5)
    print("self-retrieval score", hits.values[:, 0].float().mean().item())


if __name__ == "__main__":
    s = os.environ.get("SMALL") == "1"
    p = argparse.ArgumentParser()
    for name, little, full in [("vocab", 50, 16384), ("dim", 16, 768), ("heads", 2, 12), ("layers", 1, 12),
                               ("length", 12, 128), ("batch", 4, 256), ("batches", 30, 90)]:
        p.add_argument(f"--{name}", type=int, default=little if s else full)
    main(p.parse_args())
