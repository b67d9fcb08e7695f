"""Service that finds earlier cases similar to a scan: embed, search, attach the records of the hits."""
import gc
import queue
import threading
from concurrent.futures import Future

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
CASES, BATCH, REQUESTS, SIDE, WIDTH = (300_000, 128, 120, 128, 128) if GPU else (2000, 4, 5, 32, 16)
torch.backends.cudnn.benchmark = True


class ScanEncoder(nn.Module):
    def __init__(self, width, dim=256):
        super().__init__()
        self.stem = nn.Conv2d(8, width, 4, stride=2, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.out = nn.Linear(width, dim)

    def forward(self, scans):
        x = torch.relu_(self.stem(scans))
        for conv in self.body:
            x = torch.relu_(conv(x))
        return F.normalize(self.out(x.mean((2, 3))), dim=1)


class CaseIndex:
    """Embeddings on the device, the records (dicts) on the host."""

    def __init__(self, n, dim=256):
        gen = torch.Generator(DEVICE).manual_seed(60)
        vectors = torch.randn(n, dim, generator=gen, device=DEVICE)
        self.vectors = F.normalize(vectors, dim=1).to(torch.bfloat16)
        ages = np.random.default_rng(61).integers(20, 90, n).tolist()
        self.records = [{"case": i, "age": age} for i, age in enumerate(ages)]

    def nearest(self, queries, k):
        return (queries @ self.vectors.T).topk(k, dim=1).indices


class Service(threading.Thread):
    def __init__(self, encoder, index):
        super().__init__(daemon=True)
        self.encoder, self.index = encoder, index
        self.jobs = queue.Queue()
        self.waiting = []

    def submit(self, scans):
        future = Future()
        self.jobs.put((scans, future))
        return future

    def answer(self, hits, ready, future):
        """Resolves a request whose hits were copied to the host in the background."""
        if ready is not None:
            ready.synchronize()
        future.set_result([[self.index.records[i] for i in row] for row in hits.tolist()])

    def process(self, scans, future):
        with torch.inference_mode():
            hits = self.index.nearest(self.encoder(scans), k=8)
        host = torch.empty(hits.shape, dtype=hits.dtype, pin_memory=GPU)
        host.copy_(hits, non_blocking=True)
        ready = torch.cuda.current_stream().record_event() if GPU else None
        self.waiting.append((host, ready, future))
        if len(self.waiting) > 2:
            self.answer(*self.waiting.pop(0))

    def run(self):
        served = 0
        while (job := self.jobs.get()) is not None:
            self.process(*job)
            served += 1
            if served % 4 == 0:
                gc.collect()  # flaw: gc-pause-in-step
        while self.waiting:
            self.answer(*self.waiting.pop(0))


def main():
    torch.manual_seed(62)
    encoder = ScanEncoder(WIDTH).to(DEVICE, torch.bfloat16).eval().to(memory_format=torch.channels_last)
    service = Service(encoder, CaseIndex(CASES))
    scans = torch.randn(4, BATCH, 8, SIDE, SIDE, device=DEVICE, dtype=torch.bfloat16)
    scans = [s.contiguous(memory_format=torch.channels_last) for s in scans]
    service.start()
    futures = [service.submit(scans[i % 4]) for i in range(REQUESTS)]
    service.jobs.put(None)
    ages = [np.mean([r["age"] for row in f.result() for r in row]) for f in futures]
    service.join()
    print(f"{len(ages)} requests, mean age of similar cases {np.mean(ages):.3f}")


if __name__ == "__main__":
    main()
