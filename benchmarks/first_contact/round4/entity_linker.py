import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
hp = dict(vocab=2048, dim=512, layers=6, heads=8, length=256, batch=64, mentions=8, entities=4096, steps=80)
if small:
    hp.update(vocab=128, dim=32, layers=1, heads=2, length=32, batch=4, mentions=3, entities=64, steps=30)


class Encoder(nn.Module):
    def __init__(self, vocab, dim, layers, heads, length):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        self.register_buffer("steps", torch.arange(length), persistent=False)
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
                                for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * layers + 1))
        self.heads = heads

    def forward(self, ids):
        x = self.emb(ids) + self.pos(self.steps)
        b, t, d = x.shape
        for i, (qkv, out, ff) in enumerate(zip(self.qkv, self.out, self.ff)):
            q, k, v = qkv(self.norms[2 * i](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
            x = x + ff(self.norms[2 * i + 1](x))
        return self.norms[-1](x)


def mention_vectors(states, spans):
    """states: (batch, time, dim); spans: for every sentence a list of (begin, end)."""
    rows = []
    for i, sentence in enumerate(spans):  # flaw: python-loop-over-tensor
        for begin, end in sentence:  # flaw: python-loop-over-tensor
            rows.append(states[i, begin:end].mean(dim=0))  # flaw: python-loop-over-tensor
    return torch.stack(rows)  # flaw: python-loop-over-tensor


def fake_corpus(n, device, rng):
    ids = torch.randint(hp["vocab"], (n, hp["batch"], hp["length"]), device=device)
    spans, gold = [], torch.randint(hp["entities"], (n, hp["batch"] * hp["mentions"]), device=device)
    for _ in range(n):
        batch = []
        for _ in range(hp["batch"]):
            starts = [rng.randrange(hp["length"] - 8) for _ in range(hp["mentions"])]
            batch.append([(s, s + rng.randint(1, 8)) for s in starts])
        spans.append(batch)
    return ids, spans, gold


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    enc = Encoder(hp["vocab"], hp["dim"], hp["layers"], hp["heads"], hp["length"]).to(device)
    link = nn.Linear(hp["dim"], hp["entities"], bias=False).to(device)
    opt = torch.optim.AdamW(list(enc.parameters()) + list(link.parameters()), lr=3e-4, fused=True)
    ids, spans, gold = fake_corpus(10, device, random.Random(4))
    for step in range(hp["steps"]):
        n = step % len(spans)
        with torch.autocast(device.type, torch.bfloat16):
            vectors = mention_vectors(enc(ids[n]), spans[n])
            scores = link(vectors)
            loss = F.cross_entropy(scores, gold[n])
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            print(f"[{step}] {loss.item():.3f}")


main()
