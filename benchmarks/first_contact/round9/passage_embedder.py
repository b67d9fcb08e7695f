"""Embed passages for a vector index: windows of fixed length, results to one pinned buffer."""

import argparse
import time
from typing import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F

HAS_GPU = torch.cuda.is_available()


class EncoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PassageEncoder(nn.Module):
    def __init__(self, vocab: int, dim: int, heads: int, depth: int, window: int):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, dim), nn.Embedding(window, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.norm(x.mean(dim=1)), dim=-1)


def windows(passages: torch.Tensor, batch: int) -> Iterator[tuple[int, torch.Tensor]]:
    for lo in range(0, len(passages), batch):
        yield lo, passages[lo : lo + batch]


class Service:
    def __init__(self, args):
        self.device = torch.device(args.device)
        self.args = args
        dtype = torch.bfloat16 if HAS_GPU else torch.float32
        with self.device:
            model = PassageEncoder(args.vocab, args.dim, args.heads, args.depth, args.window)
        self.model = model.to(dtype).eval()

    @torch.inference_mode()
    def embed(self, passages: torch.Tensor) -> torch.Tensor:
        """Embeddings in host memory; the host waits for the device once, at the end."""
        result = torch.empty(len(passages), self.args.dim, pin_memory=HAS_GPU)
        for lo, ids in windows(passages, self.args.batch):
            vectors = self.model(ids.to(self.device, non_blocking=True))
            result[lo : lo + len(ids)].copy_(vectors.float(), non_blocking=True)
        if HAS_GPU:
            torch.cuda.current_stream().synchronize()
        return result


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda" if HAS_GPU else "cpu")
    p.add_argument("--vocab", type=int, default=30528 if HAS_GPU else 256)
    p.add_argument("--dim", type=int, default=1024 if HAS_GPU else 32)
    p.add_argument("--heads", type=int, default=16 if HAS_GPU else 2)
    p.add_argument("--depth", type=int, default=16 if HAS_GPU else 2)
    p.add_argument("--window", type=int, default=256 if HAS_GPU else 16)
    p.add_argument("--batch", type=int, default=128 if HAS_GPU else 4)
    p.add_argument("--passages", type=int, default=128 * 110 if HAS_GPU else 20)
    return p.parse_args()


if __name__ == "__main__":
    args = parse()
    torch.manual_seed(0)
    passages = torch.randint(0, args.vocab, (args.passages, args.window))
    if HAS_GPU:
        passages = passages.pin_memory()
    service = Service(args)
    start = time.perf_counter()
    vectors = service.embed(passages)
    rate = len(passages) / (time.perf_counter() - start)
    print(f"{rate:.0f} passages/s; mean similarity to the first {(vectors @ vectors[0]).mean():.4f}")
