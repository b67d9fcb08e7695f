"""Sample framework strings (zeolite building units as letters) from a small decoder, a batch at a time."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

SMALL = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
UNITS = 512
if SMALL:
    DIM, LAYERS, HEADS, BATCH, SEED, TOTAL, SHEETS = 64, 2, 4, 2, 8, 24, 1
else:
    DIM, LAYERS, HEADS, BATCH, SEED, TOTAL, SHEETS = 1024, 12, 16, 64, 256, 576, 2


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.wqkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.wo = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, store, at):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.wqkv(x).chunk(3, -1))
        n = x.size(1)
        store[0][:, :, at:at + n] = k
        store[1][:, :, at:at + n] = v
        k, v = store[0][:, :, :at + n], store[1][:, :, :at + n]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        return self.wo(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attend = Attend()
        self.think = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, store, at):
        x = x + self.attend(self.a(x), store, at)
        return x + self.think(self.b(x))


class Scribe(nn.Module):
    def __init__(self):
        super().__init__()
        self.unit = nn.Embedding(UNITS, DIM)
        self.place = nn.Embedding(TOTAL, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, units, stores, at):
        x = self.unit(units) + self.place.weight[at : at + units.size(1)]
        for layer, store in zip(self.layers, stores):
            x = layer(x, store, at)
        return F.linear(self.norm(x[:, -1]), self.unit.weight)


@torch.inference_mode()
def compose(model, seeds):
    canvas = torch.zeros(seeds.size(0), TOTAL, dtype=torch.long, device=seeds.device)
    canvas[:, : seeds.size(1)] = seeds
    shape = (2, seeds.size(0), HEADS, TOTAL, DIM // HEADS)
    stores = [torch.zeros(shape, dtype=model.unit.weight.dtype, device=seeds.device) for _ in range(LAYERS)]
    at, done = seeds.size(1), 0
    while at < TOTAL:
        nxt = model(canvas[:, done:at], stores, done)
        done = at
        canvas[:, at] = nxt.argmax(-1)
        at += 1
    return canvas


if __name__ == "__main__":
    torch.manual_seed(4)
    scribe = Scribe().to(DEVICE, torch.float32 if SMALL else torch.bfloat16).eval()
    begun = time.perf_counter()
    total = 0
    for _ in range(SHEETS):
        seeds = torch.randint(0, UNITS, (BATCH, SEED), device=DEVICE)
        total += compose(scribe, seeds)[:, SEED:].sum()
    print("checksum", int(total))
    print("%.1f s" % (time.perf_counter() - begun))
