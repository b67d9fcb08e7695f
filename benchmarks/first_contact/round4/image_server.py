"""Embedding service for photographs: requests are grouped and answered with unit vectors."""
import os
import queue
import threading

import torch
from torch import nn
from torch.nn import functional as F

LITE = os.environ.get("SMALL") == "1"


class Embedder(nn.Module):
    def __init__(self, dim, depth, heads, patch, side):
        super().__init__()
        self.patch = patch
        self.project = nn.Linear(3 * patch * patch, dim)
        self.position = nn.Parameter(torch.randn((side // patch) ** 2, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 256)

    def forward(self, pixels):
        x = F.pixel_unshuffle(pixels, self.patch).flatten(2).transpose(1, 2)
        x = self.encoder(self.project(x) + self.position)
        return F.normalize(self.out(x.mean(1)), dim=-1)


class Service:
    def __init__(self, group, side):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        dim, depth, heads, patch = (32, 2, 2, 8) if LITE else (384, 24, 6, 16)
        self.model = Embedder(dim, depth, heads, patch, side).to(self.device, torch.bfloat16).eval()
        self.group = group

    def embed(self, pixels):  # flaw: grad-in-eval
        pixels = pixels.to(self.device, non_blocking=True)
        pixels = pixels.to(torch.bfloat16).sub_(127.5).div_(58.0)
        return self.model(pixels)  # flaw: grad-in-eval

    def answer(self, inbox, outbox):
        waiting = None
        while (request := inbox.get()) is not None:
            vectors = self.embed(request)
            reply = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=self.device.type == "cuda")
            reply.copy_(vectors.detach(), non_blocking=True)
            done = None
            if self.device.type == "cuda":
                done = torch.cuda.Event()
                done.record()
            if waiting is not None:
                self.deliver(waiting, outbox)
            waiting = (reply, done)
        self.deliver(waiting, outbox)

    @staticmethod
    def deliver(item, outbox):
        reply, done = item
        if done is not None:
            done.synchronize()
        outbox.append(reply)


def clients(inbox, count, group, side, pinned):
    photos = [torch.randint(0, 256, (group, 3, side, side), dtype=torch.uint8) for _ in range(4)]
    if pinned:
        photos = [p.pin_memory() for p in photos]
    for n in range(count):
        inbox.put(photos[n % 4])
    inbox.put(None)


if __name__ == "__main__":
    side, group, count = (32, 2, 30) if LITE else (224, 64, 200)
    service, inbox, replies = Service(group, side), queue.Queue(maxsize=4), []
    feeder = threading.Thread(target=clients, args=(inbox, count, group, side, service.device.type == "cuda"), daemon=True)
    feeder.start()
    service.answer(inbox, replies)
    feeder.join()
    print(len(replies), "groups,", float(replies[-1].float().norm(dim=-1).mean()))
