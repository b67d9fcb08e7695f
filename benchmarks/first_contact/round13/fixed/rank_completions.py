"""Offline batch inference: the likeliest next word of every prompt in a file."""
import os
import time
from itertools import islice

import torch
import torch.nn.functional as F
from torch import nn

SIZES = {"vocab": 50304, "dim": 1024, "layers": 12, "context": 512, "batch": 64, "batches": 400}
if os.environ.get("TINY") == "1":
    SIZES = {"vocab": 512, "dim": 64, "layers": 2, "context": 32, "batch": 4, "batches": 60}

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32


class Mix(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = dim // 64
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, 64).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ln_mix, self.ln_mlp = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix = Mix(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(approximate="tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.mix(self.ln_mix(x))
        return x + self.mlp(self.ln_mlp(x))


class TiedReadout(nn.Module):
    """Shares its weight with the input embedding."""

    def __init__(self, table):
        super().__init__()
        self.table = table
        self.norm = nn.LayerNorm(table.embedding_dim)

    def forward(self, x):
        return self.norm(x[:, -1:]) @ self.table.weight.t()


class WordModel(nn.Module):
    def __init__(self, vocab, dim, layers, context):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.layers = nn.Sequential(*[Layer(dim) for _ in range(layers)])
        self.readout = TiedReadout(self.words)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[:ids.shape[1]]
        return self.readout(self.layers(x))


def prompts(s):
    """Stand-in for a tokenised file: page-locked blocks of token ids."""
    g = torch.Generator().manual_seed(55)
    block = torch.randint(s["vocab"], (16, s["batch"], s["context"]), generator=g)
    block = block.pin_memory() if device == "cuda" else block
    k = 0
    while True:
        yield block[k % 16].to(device, non_blocking=True)
        k += 1


def best_words(model, source):
    for ids in source:
        scores = model(ids)
        yield scores.select(1, -1).max(-1)


@torch.inference_mode()
def main(s):
    torch.manual_seed(2)
    with torch.device(device):
        model = WordModel(s["vocab"], s["dim"], s["layers"], s["context"]).to(dtype).eval()
    start = time.perf_counter()
    words, score = [], torch.zeros((), device=device)
    for best in best_words(model, islice(prompts(s), s["batches"])):
        words.append(best.indices)
        score += best.values.float().mean()
    words = torch.cat(words).cpu()
    print(f"{len(words)} prompts, word sum {words.sum().item()}, score {score.item() / s['batches']:.4f}")
    print(f"{time.perf_counter() - start:.2f} s")


main(SIZES)
