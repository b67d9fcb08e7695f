"""Batched sampling of long replies from a decoder with cached keys and values."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class Cache:
    def __init__(self):
        self.k = None
        self.v = None

    def extend(self, k, v):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat((self.k, k), dim=2)  # flaw: cat-in-loop
            self.v = torch.cat((self.v, v), dim=2)  # flaw: cat-in-loop
        return self.k, self.v


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, cache):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        first = cache.k is None
        k, v = cache.extend(k, v)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=first)
        x = x + self.o(a.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, vocab, dim, depth, heads, longest):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(longest, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.norm = nn.RMSNorm(dim)

    def forward(self, ids, places, caches):
        x = self.tok(ids) + self.pos(places)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return F.linear(self.norm(x[:, -1]), self.tok.weight)


@torch.inference_mode()
def sample(model, prompt, count, temperature=0.8):
    caches = [Cache() for _ in model.layers]
    total = prompt.shape[1] + count
    places = torch.arange(total, device=prompt.device)
    out = torch.empty(prompt.shape[0], total, dtype=torch.long, device=prompt.device)
    have = prompt.shape[1]
    out[:, :have] = prompt
    logits = model(prompt, places[:have], caches)
    for at in range(have, total):
        noise = torch.empty_like(logits, dtype=torch.float32).exponential_()
        out[:, at] = torch.softmax(logits.float() / temperature, -1).div_(noise).argmax(-1)
        if at + 1 < total:
            logits = model(out[:, at:at + 1], places[at:at + 1], caches)
    return out


def main():
    if os.environ.get("SMALL") == "1":
        vocab, dim, depth, heads, users, prompt, fresh = 128, 32, 2, 2, 4, 16, 30
    else:
        vocab, dim, depth, heads, users, prompt, fresh = 8192, 1024, 8, 16, 256, 448, 96
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    model = Decoder(vocab, dim, depth, heads, prompt + fresh).to(device, dtype).eval()
    questions = torch.randint(vocab, (users, prompt), device=device)
    for _ in range(2):
        replies = sample(model, questions, fresh)
        print(replies.shape, int(replies[:, prompt:].sum()) % 1000)


if __name__ == "__main__":
    main()
