"""Reranking service: every request carries passages, each is scored by its likelihood."""
import os
import queue
import threading
from contextlib import ContextDecorator

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
ON_GPU = torch.cuda.is_available()
DEV = torch.device("cuda" if ON_GPU else "cpu")
DT = torch.bfloat16 if ON_GPU else torch.float32
VOCAB, DIM, DEPTH, LENGTH, REQUESTS = (256, 64, 2, 32, 5) if TINY else (32768, 1024, 8, 1024, 900)
SIZES = (2, 4, 3) if TINY else (12, 16, 8)


class Tidy(ContextDecorator):
    """Wraps the handling of one request; counts it and leaves the card as it was found."""

    handled = 0

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        Tidy.handled += 1
        if ON_GPU:
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
        return False


class Part(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.w1, self.w2 = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.w2(F.gelu(self.w1(self.n2(x))))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.parts = nn.ModuleList(Part(DIM) for _ in range(DEPTH))
        self.norm = nn.RMSNorm(DIM)
        self.out = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for part in self.parts:
            x = part(x)
        return self.out(self.norm(x))


class Service:
    def __init__(self):
        torch.manual_seed(0)
        self.model = Reader().to(DEV, DT).eval()
        self.inbox: queue.Queue = queue.Queue(maxsize=8)
        self.best = []
        if not TINY:
            for part in self.model.parts:
                part.compile(dynamic=True)

    def clients(self):
        gen = torch.Generator().manual_seed(1)
        for n in range(REQUESTS):
            tokens = torch.randint(VOCAB, (SIZES[n % len(SIZES)], LENGTH + 1), generator=gen)
            self.inbox.put(tokens.pin_memory() if ON_GPU else tokens)
        self.inbox.put(None)

    @Tidy()
    @torch.inference_mode()
    def handle(self, tokens):
        tokens = tokens.to(DEV, non_blocking=True)
        logits = self.model(tokens[:, :-1])
        target = tokens[:, 1:]
        nll = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
        self.best.append(nll.view(target.shape).mean(1).amin())

    def serve(self):
        threading.Thread(target=self.clients, daemon=True).start()
        for tokens in iter(self.inbox.get, None):
            self.handle(tokens)
        return torch.stack(self.best).float().mean().item()


if __name__ == "__main__":
    mean = Service().serve()
    print(f"{Tidy.handled} requests, best score on average {mean:.4f}")
