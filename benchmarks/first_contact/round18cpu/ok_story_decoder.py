"""Well made: greedy continuation of many prompts with a preallocated key/value cache."""
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
WORDS, WIDTH, HEADS = (100, 32, 2) if TINY else (12000, 256, 4)
ROWS, START, LENGTH = (2, 4, 10) if TINY else (128, 32, 160)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("keys", torch.zeros(ROWS, HEADS, LENGTH, WIDTH // HEADS), persistent=False)
        self.register_buffer("values", torch.zeros_like(self.keys), persistent=False)

    def forward(self, x, at):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        self.keys[:, :, at : at + t], self.values[:, :, at : at + t] = k, v
        y = F.scaled_dot_product_attention(q, self.keys[:, :, : at + t], self.values[:, :, : at + t], is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.ffn(self.n2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids, at):
        x = self.words(ids) + self.places.weight[at : at + ids.size(1)]
        for layer in self.layers:
            x = layer(x, at)
        return self.head(self.norm(x[:, -1])).argmax(-1, keepdim=True)


@torch.inference_mode()
def main():
    torch.manual_seed(9)
    model = Decoder().eval()
    story = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    story[:, :START] = torch.randint(WORDS, (ROWS, START))
    story[:, START : START + 1] = model(story[:, :START], 0)
    began = time.perf_counter()
    for at in range(START, LENGTH - 1):
        story[:, at + 1 : at + 2] = model(story[:, at : at + 1], at)
    print(f"{(time.perf_counter() - began) / (LENGTH - 1 - START) * 1e3:.1f} ms", file=sys.stderr)
    print("checksum", int(story.sum()))


main()
