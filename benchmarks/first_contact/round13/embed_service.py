"""Embedding service: requests arrive in host memory, vectors leave through host memory.

Uploads, compute, and downloads run on three streams, two requests in flight.
"""
import os
import time
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
LENGTH, DIM, DEPTH, VOCAB = (16, 64, 1, 128) if tiny else (256, 768, 12, 32768)
REQUEST, REQUESTS = (4, 60) if tiny else (256, 300)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = device.type == "cuda"
dtype = torch.bfloat16 if gpu else torch.float32


class Encoder(nn.Module):
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
            self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
            self.fc, self.back = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

        def forward(self, x):
            q, k, v = self.qkv(self.ln1(x)).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4).unbind()
            x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            return x + self.back(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM)
        self.place = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        self.parts = nn.ModuleList(Encoder.Part() for _ in range(DEPTH))

    def forward(self, ids):
        x = self.tokens(ids) + self.place
        for part in self.parts:
            x = part(x)
        return F.normalize(x.mean(1), dim=-1)


class Lane:
    """Buffers of one request in flight."""

    def __init__(self):
        self.host_in = torch.empty(REQUEST, LENGTH, dtype=torch.int64, pin_memory=gpu)
        self.host_out = torch.empty(REQUEST, DIM, dtype=dtype, pin_memory=gpu)
        self.ids = torch.empty(REQUEST, LENGTH, dtype=torch.int64, device=device)
        if gpu:
            self.uploaded, self.computed, self.finished = (torch.cuda.Event() for _ in range(3))


class Service:
    def __init__(self, model, lanes=3):
        self.model = model
        self.free = deque(Lane() for _ in range(lanes))
        self.busy = deque()
        if gpu:
            self.up, self.down = torch.cuda.Stream(), torch.cuda.Stream()

    def submit(self, request):
        lane = self.free.popleft()
        lane.host_in.copy_(request)
        if not gpu:
            lane.host_out.copy_(self.model(lane.ids.copy_(lane.host_in)))
        else:
            with torch.cuda.stream(self.up):
                lane.ids.copy_(lane.host_in, non_blocking=True)
                lane.uploaded.record()
            main = torch.cuda.current_stream()
            main.wait_event(lane.uploaded)
            vectors = self.model(lane.ids)
            lane.computed.record()
            with torch.cuda.stream(self.down):
                self.down.wait_event(lane.computed)
                lane.host_out.copy_(vectors, non_blocking=True)
                vectors.record_stream(self.down)
                lane.finished.record()
        self.busy.append(lane)

    def collect(self):
        lane = self.busy.popleft()
        if gpu:
            lane.finished.synchronize()
        answer = lane.host_out.float().numpy().copy()
        self.free.append(lane)
        return answer

    def serve(self, requests):
        for request in requests:
            if not self.free:
                yield self.collect()
            self.submit(request)
        while self.busy:
            yield self.collect()


def arrivals():
    g = torch.Generator().manual_seed(90)
    bank = torch.randint(VOCAB, (16, REQUEST, LENGTH), generator=g)
    for k in range(REQUESTS):
        yield bank[k % 16]


@torch.inference_mode()
def main():
    torch.manual_seed(1)
    with device:
        model = Encoder().to(dtype).eval()
    if gpu:
        for part in model.parts:
            part.compile(dynamic=False)
    service = Service(model)
    tic = time.perf_counter()
    mass, count = 0.0, 0
    for answer in service.serve(arrivals()):
        mass += float(answer[:, 0].sum())
        count += len(answer)
    print(f"{count} vectors, checksum {mass:.4f}, {time.perf_counter() - tic:.2f} s")


main()
