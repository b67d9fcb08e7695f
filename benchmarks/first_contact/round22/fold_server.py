"""Embedding service for protein chains.

Clients put chains (crops of 1,024 residues) into a queue; the worker takes what waits, at most MOST at a time, and
answers with one vector a chain.  Here the clients are simulated: a burst arrives whenever the queue runs low.
"""
import collections
import logging
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RESIDUES, WIDTH, HEADS, LAYERS = (32, 32, 4, 2) if TINY else (1024, 1024, 16, 12)
MOST, BURST, POOL, ROUNDS, TELL = (4, 16, 64, 40, 10) if TINY else (32, 256, 4096, 2000, 50)

log = logging.getLogger("fold")


class SelfMix(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.inward = nn.Linear(width, 3 * width, bias=False)
        self.outward = nn.Linear(width, width, bias=False)

    def pool(self, q, k, v):
        affinity = torch.einsum("bihd,bjhd->bhij", q * self.scale, k)  # flaw: hand-written-attention
        affinity = affinity.softmax(dim=-1)  # flaw: hand-written-attention
        return torch.einsum("bhij,bjhd->bihd", affinity, v)  # flaw: hand-written-attention

    def forward(self, x):
        parts = self.inward(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return self.outward(self.pool(*parts).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before_mix = nn.RMSNorm(width, eps=1e-6)
        self.mix = SelfMix(width, heads)
        self.before_feed = nn.RMSNorm(width, eps=1e-6)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.mix(self.before_mix(x))
        return x + self.feed(self.before_feed(x))


class ChainEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.residue = nn.Embedding(32, WIDTH)
        self.position = nn.Embedding(RESIDUES, WIDTH)
        self.layers = nn.Sequential(*(Layer(WIDTH, HEADS) for _ in range(LAYERS)))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)

    def forward(self, chains):
        return self.norm(self.layers(self.residue(chains) + self.position.weight)).mean(1)


class Clients:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        chains = torch.randint(32, (POOL, RESIDUES), generator=g)
        self.chains = chains.pin_memory() if torch.cuda.is_available() else chains
        self.sent = 0

    def burst(self):
        at = self.sent % POOL
        self.sent += BURST
        return range(at, min(at + BURST, POOL))


class Worker:
    def __init__(self, model, clients):
        self.model, self.clients = model, clients
        self.waiting = collections.deque()
        self.answered = 0
        self.drift = torch.zeros((), device=DEVICE)

    def take(self):
        if len(self.waiting) < MOST:
            self.waiting.extend(self.clients.burst())
        taken = [self.waiting.popleft() for _ in range(MOST)]
        return self.clients.chains[taken[0] : taken[-1] + 1].to(DEVICE, non_blocking=True)

    @torch.inference_mode()
    def serve(self):
        vectors = F.normalize(self.model(self.take()).float(), dim=-1)
        self.drift += vectors[0].dot(vectors[1])
        self.answered += len(vectors)
        return vectors


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    torch.manual_seed(61)
    model = ChainEncoder().eval().to(DEVICE, torch.bfloat16)
    worker = Worker(model, Clients(seed=67))
    began = time.perf_counter()
    for number in range(1, ROUNDS + 1):
        worker.serve()
        if number % TELL == 0:
            similar = worker.drift.item() / TELL
            rate = worker.answered / (time.perf_counter() - began)
            log.info("answered %d, similarity of neighbours %.4f (%d a second)", worker.answered, similar, rate)
            worker.drift.zero_()


if __name__ == "__main__":
    main()
