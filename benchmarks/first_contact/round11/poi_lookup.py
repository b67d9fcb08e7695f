"""Lookup service for points of interest: batches of query vectors against a large index, exact search."""
import collections
import queue
import threading

import numpy as np
import torch

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
Limits = collections.namedtuple("Limits", "places dim queries batches nearest")
LIMITS = Limits(1_000_000, 256, 1024, 150, 32) if GPU else Limits(1000, 16, 8, 4, 4)


class Slot:
    """Pinned memory for one batch: queries in, answers out, and the event after the last use."""

    def __init__(self, limits):
        self.queries = torch.empty(limits.queries, limits.dim, pin_memory=GPU)
        self.answers = torch.empty(limits.queries, limits.nearest, dtype=torch.int64, pin_memory=GPU)
        self.done = torch.cuda.Event() if GPU else None

    def mark(self):
        if self.done is not None:
            self.done.record()

    def wait(self):
        if self.done is not None:
            self.done.synchronize()


class Frontend(threading.Thread):
    """Collects requests of clients into free slots (here: random vectors)."""

    def __init__(self, limits, free, filled):
        super().__init__(daemon=True)
        self.limits, self.free, self.filled = limits, free, filled
        rng = np.random.default_rng(130)
        shape = (4, limits.queries, limits.dim)
        self.requests = torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))

    def run(self):
        for i in range(self.limits.batches):
            slot = self.free.get()
            slot.queries.copy_(self.requests[i % len(self.requests)])
            self.filled.put(slot)
        self.filled.put(None)


class Index:
    def __init__(self, limits):
        gen = torch.Generator(DEVICE).manual_seed(131)
        vectors = torch.randn(limits.places, limits.dim, generator=gen, device=DEVICE)
        self.vectors = torch.nn.functional.normalize(vectors, dim=1).to(torch.bfloat16)
        self.nearest = limits.nearest

    @torch.inference_mode()
    def search(self, queries):
        scores = queries.to(torch.bfloat16) @ self.vectors.T
        return scores.topk(self.nearest, dim=1, sorted=True).indices


class Backend:
    """Keeps up to three batches in flight; an answer is read when its event has passed."""

    def __init__(self, index, free, filled):
        self.index, self.free, self.filled = index, free, filled
        self.in_flight = collections.deque()
        self.digest = []

    def launch(self, slot):
        queries = slot.queries.to(DEVICE, non_blocking=True)
        slot.answers.copy_(self.index.search(queries), non_blocking=True)
        slot.mark()
        self.in_flight.append(slot)

    def finish(self):
        slot = self.in_flight.popleft()
        slot.wait()
        self.digest.append(float(slot.answers[:, 0].numpy().mean()))
        self.free.put(slot)

    def serve(self):
        while (slot := self.filled.get()) is not None:
            self.launch(slot)
            if len(self.in_flight) == 3:
                self.finish()
        while self.in_flight:
            self.finish()
        return self.digest


def main():
    free, filled = queue.Queue(), queue.Queue()
    for _ in range(6):
        free.put(Slot(LIMITS))
    backend = Backend(Index(LIMITS), free, filled)
    Frontend(LIMITS, free, filled).start()
    digest = backend.serve()
    print(f"{len(digest)} batches, mean id of the best place {np.mean(digest):.2f}")


if __name__ == "__main__":
    main()
