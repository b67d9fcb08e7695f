"""Sample molecules (token strings) from a causal transformer, greedy, batch after batch of scaffolds."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32

if TINY:
    VOCAB, DIM, HEADS, DEPTH, SCAFFOLD, TAIL, BATCH, ROUNDS = 32, 32, 2, 2, 6, 6, 4, 2
else:
    VOCAB, DIM, HEADS, DEPTH, SCAFFOLD, TAIL, BATCH, ROUNDS = 512, 768, 12, 6, 96, 48, 128, 72


class Memory:
    """Keys and values of one layer."""

    def __init__(self, batch, length):
        self.k = torch.empty(batch, HEADS, length, DIM // HEADS, device=DEVICE, dtype=DTYPE)
        self.v = torch.empty_like(self.k)
        self.filled = 0

    def append(self, k, v):
        stop = self.filled + k.shape[2]
        self.k[:, :, self.filled:stop] = k
        self.v[:, :, self.filled:stop] = v
        self.filled = stop
        return self.k[:, :, :stop], self.v[:, :, :stop]


class CausalLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_a, self.ln_m = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.fc, self.proj = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x, memory=None):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.ln_a(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if memory is not None:
            k, v = memory.append(k, v)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, DIM))
        return x + self.proj(F.gelu(self.fc(self.ln_m(x))))


class MoleculeLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(SCAFFOLD + TAIL, DIM)
        self.layers = nn.ModuleList(CausalLayer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids, start=0, memories=None):
        where = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.tok(ids) + self.pos(where)
        for i, layer in enumerate(self.layers):
            x = layer(x, memories[i] if memories else None)
        return self.norm(x[:, -1]) @ self.tok.weight.T


def extend(model, scaffold):
    """Grow every scaffold by TAIL tokens."""
    b, n = scaffold.shape
    ids = torch.empty(b, n + TAIL, dtype=torch.long, device=scaffold.device)
    ids[:, :n] = scaffold
    for stop in range(n, n + TAIL):
        logits = model(ids[:, :stop])  # flaw: generation-without-cache
        ids[:, stop] = logits.argmax(-1)
    return ids


@torch.inference_mode()
def main():
    torch.manual_seed(21)
    model = MoleculeLM().to(DEVICE, DTYPE).eval()
    pool = torch.randint(VOCAB, (ROUNDS, BATCH, SCAFFOLD), device=DEVICE)
    hist = torch.zeros(VOCAB, device=DEVICE, dtype=torch.long)
    t0 = time.perf_counter()
    for scaffold in pool:
        grown = extend(model, scaffold)
        hist += torch.bincount(grown[:, SCAFFOLD:].flatten(), minlength=VOCAB)
    top = hist.topk(3)
    print("commonest tokens", top.indices.tolist(), "of", hist.sum().item(), f"in {time.perf_counter() - t0:.1f} s")


main()
