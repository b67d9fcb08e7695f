"""An image embedding service: requests wait in a queue, are batched, and answered with unit vectors."""

import queue
import threading
from concurrent.futures import Future

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
SIZE, PATCH, DIM, DEPTH, HEADS = (224, 16, 768, 12, 12) if GPU else (32, 16, 32, 2, 2)
PER_REQUEST = 16 if GPU else 2
MAX_REQUESTS = 8
REQUESTS = 640 if GPU else 16


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class ImageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.position = nn.Parameter(torch.randn(1, (SIZE // PATCH) ** 2, DIM) * 0.02)
        self.blocks = nn.Sequential(*[Block(DIM, HEADS) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, 512, bias=False)
        self.register_buffer("mean", torch.tensor([0.481, 0.458, 0.408]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.269, 0.261, 0.276]).view(1, 3, 1, 1))

    def forward(self, images):
        x = (images.float() / 255 - self.mean) / self.std
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return F.normalize(self.head(self.norm(self.blocks(x)).mean(1)), dim=-1)


class Service:
    def __init__(self):
        self.requests = queue.Queue(maxsize=64)
        self.encoder = ImageEncoder().eval().to(DEVICE)
        self.staging = torch.empty(2, MAX_REQUESTS * PER_REQUEST, 3, SIZE, SIZE, dtype=torch.uint8, pin_memory=GPU)

    def submit(self, images):
        answer = Future()
        self.requests.put((images, answer))
        return answer

    def take(self, turn):
        waiting = [self.requests.get()]
        while len(waiting) < MAX_REQUESTS and waiting[-1] is not None:
            waiting.append(self.requests.get())
        done = waiting[-1] is None
        waiting = [request for request in waiting if request is not None]
        batch = self.staging[turn % 2, : len(waiting) * PER_REQUEST]
        if waiting:
            torch.cat([images for images, _ in waiting], out=batch)
        return batch, [answer for _, answer in waiting], done

    def serve(self):
        turn, done, previous = 0, False, None
        while not done:
            batch, answers, done = self.take(turn)
            with torch.inference_mode(), torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                vectors = self.encoder(batch.to(DEVICE, non_blocking=True)).float()
            vectors = vectors.to("cpu", non_blocking=True)
            ready = torch.cuda.current_stream().record_event() if GPU else None
            if previous is not None:
                self.reply(*previous)
            previous = (vectors, ready, answers)
            turn += 1
        self.reply(*previous)

    def reply(self, vectors, ready, answers):
        if ready is not None:
            ready.synchronize()
        for answer, part in zip(answers, vectors.split(PER_REQUEST)):
            answer.set_result(part)


def client(service, answers):
    generator = torch.Generator().manual_seed(3)
    pool = torch.randint(0, 256, (8, PER_REQUEST, 3, SIZE, SIZE), dtype=torch.uint8, generator=generator)
    for i in range(REQUESTS):
        answers.append(service.submit(pool[i % len(pool)]))
    service.requests.put(None)


if __name__ == "__main__":
    torch.manual_seed(0)
    service, answers = Service(), []
    thread = threading.Thread(target=client, args=(service, answers))
    thread.start()
    service.serve()
    thread.join()
    vectors = torch.cat([answer.result() for answer in answers])
    print(len(vectors), "vectors, mean norm", vectors.norm(dim=1).mean().item())
