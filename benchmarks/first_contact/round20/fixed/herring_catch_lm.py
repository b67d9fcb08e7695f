# Logbooks of herring boats as token streams (gear, ground, weather, weight ...): a small causal language model.
import math
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
WORDS = 28013
DIM, HEADS, LAYERS = 640, 10, 4
LENGTH, ROWS, STEPS = 512, 24, 500


def logbooks(entries, seed=3):
    """A Zipf-like stream in which every other word hints at the next one."""
    rng = torch.Generator(device=device).manual_seed(seed)
    u = torch.rand(entries, generator=rng, device=device)
    stream = (WORDS ** u).long().clamp(max=WORDS - 1)
    stream[1::2] = (stream[:-1:2] * 7 + 13) % WORDS
    return stream


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.out = nn.Linear(DIM, DIM, bias=False)
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Logbook(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM)
        self.places = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.words.weight, std=0.02)
        self.speak = nn.Linear(DIM, -(-WORDS // 64) * 64, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places
        scores = self.speak(self.norm(self.blocks(x)))
        return scores.flatten(0, 1)[:, :WORDS]


def rate(step):
    return min(1.0, (step + 1) / 40) * 0.5 * (1 + math.cos(math.pi * step / STEPS))


def main():
    torch.manual_seed(0)
    stream = logbooks(ROWS * LENGTH * 64 + 1)
    inputs, wanted = stream[:-1].view(-1, LENGTH), stream[1:].view(-1, LENGTH)
    model = Logbook().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, betas=(0.9, 0.95), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    began = time.perf_counter()
    for step in range(STEPS):
        at = step % 64 * ROWS
        with torch.autocast(device, dtype=torch.bfloat16):
            scores = model(inputs[at : at + ROWS])
            loss = F.cross_entropy(scores, wanted[at : at + ROWS].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"{step + 1:4d}  loss {loss.item():.3f}  {(time.perf_counter() - began) / (step + 1) * 1e3:.1f} ms/step")


main()
