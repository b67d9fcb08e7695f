"""Embed passages for retrieval: bfloat16 weights, rotary positions, one request block after the other."""
import os
import time
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.bfloat16
SIZE = dict(vocab=128, dim=32, heads=2, depth=2, length=16, block=4, requests=4) if TINY else \
    dict(vocab=32768, dim=1024, heads=16, depth=12, length=1024, block=32, requests=180)
torch.set_float32_matmul_precision("high")


class Rotary(nn.Module):
    def __init__(self, head, length, base=10000.0):
        super().__init__()
        freq = base ** (-torch.arange(0, head, 2) / head)
        angle = torch.outer(torch.arange(length), freq)
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1), persistent=False)
        self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1), persistent=False)

    def forward(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat((-b, a), -1) * self.sin  # flaw: slow-attention-kernel|fp32-matmul


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.RMSNorm(dim, dtype=HALF)
        self.n2 = nn.RMSNorm(dim, dtype=HALF)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False, dtype=HALF)
        self.o = nn.Linear(dim, dim, bias=False, dtype=HALF)
        self.w1 = nn.Linear(dim, 4 * dim, bias=False, dtype=HALF)
        self.w2 = nn.Linear(4 * dim, dim, bias=False, dtype=HALF)

    def forward(self, x, rotary):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotary(q), rotary(k)  # flaw: slow-attention-kernel|fp32-matmul
        mixed = F.scaled_dot_product_attention(q, k, v.to(q.dtype))  # flaw: slow-attention-kernel|fp32-matmul
        x = x + self.o(mixed.transpose(1, 2).reshape(b, n, d).to(x.dtype))
        return x + self.w2(F.silu(self.w1(self.n2(x))))


class Embedder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.words = nn.Embedding(s["vocab"], s["dim"], dtype=HALF)
        self.layers = nn.ModuleList(EncoderLayer(s["dim"], s["heads"]) for _ in range(s["depth"]))
        self.rotary = Rotary(s["dim"] // s["heads"], s["length"])
        self.norm = nn.RMSNorm(s["dim"], dtype=HALF)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, self.rotary)
        return F.normalize(self.norm(x).float().mean(1), dim=-1)


@contextmanager
def stopwatch(what):
    t = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - t:.1f} s")


def requests(s):
    gen = torch.Generator(DEVICE).manual_seed(8)
    for _ in range(s["requests"]):
        yield torch.randint(s["vocab"], (s["block"], s["length"]), device=DEVICE, generator=gen)


@torch.inference_mode()
def serve(s):
    torch.manual_seed(0)
    model = Embedder(s).to(DEVICE).eval()
    if not TINY:
        for layer in model.layers:
            layer.compile()
    index = torch.empty(s["requests"] * s["block"], s["dim"], device=DEVICE)
    row = 0
    with stopwatch("embedding"):
        for ids in requests(s):
            index[row:row + len(ids)] = model(ids)
            row += len(ids)
        spread = (index @ index.mean(0)).mean().item()
    print(f"spread {spread:.4f}")


if __name__ == "__main__":
    serve(SIZE)
