"""Sample melodies from a small music transformer (untrained weights, for the demo server)."""
import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn


class Attn(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x, cache, at):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        cache[0][:, :, at:at + t] = k
        cache[1][:, :, at:at + t] = v
        k, v = cache[0][:, :, :at + t], cache[1][:, :, :at + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attn(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, cache, at):
        x = x + self.attn(self.n1(x), cache, at)
        return x + self.mlp(self.n2(x))


class MusicModel(nn.Module):
    def __init__(self, vocab, d, heads, layers, length):
        super().__init__()
        self.note = nn.Embedding(vocab, d)
        self.place = nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab)
        self.register_buffer("ticks", torch.arange(length))

    def forward(self, notes, caches, at):
        x = self.note(notes) + self.place(self.ticks[at:at + notes.size(1)])
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache, at)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def compose(model, primer, total, temperature=1.0):
    b, start = primer.shape
    piece = primer.new_empty(b, total)
    piece[:, :start] = primer
    d, heads = model.head.in_features, model.blocks[0].attn.heads
    caches = [model.head.weight.new_empty(2, b, heads, total, d // heads) for _ in model.blocks]
    for t in range(start, total):
        at = 0 if t == start else t - 1
        logits = model(piece[:, at:t], caches, at)
        probs = F.softmax(logits.float() / temperature, -1)
        piece[:, t] = torch.multinomial(probs, 1).squeeze(1)
        if t % 64 == 0:
            print("at note", t)
    return piece


if __name__ == "__main__":
    tiny = os.environ.get("SMALL") == "1"
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=2 if tiny else 64)
    ap.add_argument("--dim", type=int, default=32 if tiny else 768)
    ap.add_argument("--layers", type=int, default=1 if tiny else 8)
    ap.add_argument("--primer", type=int, default=8 if tiny else 256)
    ap.add_argument("--total", type=int, default=38 if tiny else 512)
    a = ap.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(5)
    net = MusicModel(512, a.dim, a.dim // 16 if tiny else 12, a.layers, a.total).to(device).eval()
    if device == "cuda":
        net = net.bfloat16()
    primer = torch.randint(512, (a.batch, a.primer), device=device)
    out = compose(net, primer, a.total)
    print(out.shape, out[:, -1].float().mean().item())
