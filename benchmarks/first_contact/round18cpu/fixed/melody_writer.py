"""Continue a batch of melodies, one event at a time, with a small decoder."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
EVENTS = 388
WIDTH, HEADS, DEPTH = (32, 4, 2) if TINY else (256, 8, 4)
PROMPT, TOTAL = (8, 20) if TINY else (96, 256)
BATCH = 2 if TINY else 8


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, cache, at):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        keys, values = cache
        keys[:, :, at : at + t] = k
        values[:, :, at : at + t] = v
        y = F.scaled_dot_product_attention(q, keys[:, :, : at + t], values[:, :, : at + t], is_causal=at == 0)
        return self.out(y.transpose(1, 2).reshape(b, t, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attend = Attend()
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache, at):
        x = x + self.attend(self.n1(x), cache, at)
        return x + self.ff(self.n2(x))


class MelodyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.event = nn.Embedding(EVENTS, WIDTH)
        self.place = nn.Embedding(TOTAL, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, EVENTS)

    def forward(self, events, caches, at):
        x = self.event(events) + self.place.weight[at : at + events.shape[1]]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, at)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def improvise(model, opening):
    """Yield the score, one event longer each time."""
    score = torch.zeros(opening.shape[0], TOTAL, dtype=torch.long)
    score[:, :PROMPT] = opening
    shape = (opening.shape[0], HEADS, TOTAL, WIDTH // HEADS)
    caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in model.layers]
    for at in range(PROMPT, TOTAL):
        seen = 0 if at == PROMPT else at - 1
        guess = model(score[:, seen:at], caches, seen)
        score[:, at] = guess.argmax(-1)
        yield score


torch.manual_seed(6)
model = MelodyModel().eval()
opening = torch.randint(EVENTS, (BATCH, PROMPT))
begin = time.perf_counter()
for score in improvise(model, opening):
    pass
print(f"{(time.perf_counter() - begin) / (TOTAL - PROMPT) * 1e3:.1f} ms a step", file=sys.stderr)
print("last events", score[:, -4:].tolist()[:2])
