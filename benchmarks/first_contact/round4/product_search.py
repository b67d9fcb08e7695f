"""Nightly job: nearest products for every stored query, in batches."""
import os
from collections import deque

import torch
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
N_PRODUCTS = 1_000 if small else 400_000
DIM = 32 if small else 512
BATCH = 8 if small else 1024
BATCHES = 30 if small else 80
TOP = 5 if small else 50
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
on_gpu = device.type == "cuda"
dtype = torch.bfloat16 if on_gpu else torch.float32


class Index:
    def __init__(self, vectors):
        self.columns = F.normalize(vectors.float(), dim=-1).to(dtype).t()

    def search(self, queries, k):
        return torch.topk(queries @ self.columns, k, dim=1, sorted=True)


class Sink:
    """Results travel to pinned memory while later batches compute; at most `depth` batches are in flight."""

    def __init__(self, rows, k, depth=3):
        self.score = torch.empty(rows, k, dtype=dtype, pin_memory=on_gpu)
        self.item = torch.empty(rows, k, dtype=torch.long, pin_memory=on_gpu)
        self.flight = deque()
        self.depth = depth
        self.finished = 0

    def put(self, at, found):
        n = len(found.values)
        self.score[at:at + n].copy_(found.values, non_blocking=True)
        self.item[at:at + n].copy_(found.indices, non_blocking=True)
        mark = torch.cuda.Event() if on_gpu else None
        if mark is not None:
            mark.record()
        self.flight.append((n, mark))
        if len(self.flight) > self.depth:
            self.land()

    def land(self):
        n, mark = self.flight.popleft()
        if mark is not None:
            mark.synchronize()
        self.finished += n

    def close(self):
        while self.flight:
            self.land()
        return self.finished


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    index = Index(torch.randn(N_PRODUCTS, DIM, device=device))
    queries = torch.randn(BATCH * 4, DIM)
    stored = queries.pin_memory() if on_gpu else queries
    sink = Sink(BATCH * BATCHES, TOP)
    for b in range(BATCHES):
        at = (b % 4) * BATCH
        q = stored[at:at + BATCH].to(device, non_blocking=True)
        found = index.search(F.normalize(q, dim=-1).to(dtype), TOP)
        sink.put(b * BATCH, found)
    print(sink.close(), "queries; best score of the first:", float(sink.score[0, 0]))


main()
