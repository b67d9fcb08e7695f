"""Character model that invents names: short training, then sampling many names greedily from random prefixes."""
import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=192)
    ap.add_argument("--heads", type=int, default=6)
    ap.add_argument("--layers", type=int, default=4)
    ap.add_argument("--vocab", type=int, default=512)
    ap.add_argument("--prompt", type=int, default=48)
    ap.add_argument("--new", type=int, default=80)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--requests", type=int, default=5)
    return ap.parse_args([])


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, past=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            store_k, store_v, start = past
            store_k[:, :, start:start + t] = k
            store_v[:, :, start:start + t] = v
            k, v = store_k[:, :, :start + t], store_v[:, :, :start + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, past=None):
        x = x + self.attn(self.n1(x), past)
        return x + self.mlp(self.n2(x))


class NameModel(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.a = a
        self.tok = nn.Embedding(a.vocab, a.dim)
        self.pos = nn.Embedding(a.prompt + a.new, a.dim)
        self.layers = nn.ModuleList(Layer(a.dim, a.heads) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.dim)
        self.register_buffer("index", torch.arange(a.prompt + a.new), persistent=False)

    def new_cache(self, batch):
        shape = (batch, self.a.heads, self.a.prompt + self.a.new, self.a.dim // self.a.heads)
        return [(torch.empty(shape), torch.empty(shape)) for _ in self.layers]

    def forward(self, ids, cache=None, start=0):
        x = self.tok(ids) + self.pos(self.index[start:start + ids.shape[1]])
        for i, layer in enumerate(self.layers):
            x = layer(x, None if cache is None else (*cache[i], start))
        return F.linear(self.norm(x[:, -1]), self.tok.weight)


@torch.inference_mode()
def complete(model, prompt, n_new):
    b, t = prompt.shape
    ids = torch.empty(b, t + n_new, dtype=torch.long)
    ids[:, :t] = prompt
    for end in range(t, t + n_new):
        logits = model(ids[:, :end])  # flaw: generation-without-cache
        ids[:, end] = logits.argmax(-1)
    return ids


def main():
    torch.manual_seed(11)
    args = get_args()
    model = NameModel(args).eval()
    for name, p in model.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=1.0 / math.sqrt(p.shape[1]))
    checksum = 0
    for request in range(args.requests):
        prompt = torch.randint(args.vocab, (args.batch, args.prompt))
        checksum += int(complete(model, prompt, args.new).sum())
    print("checksum", checksum)


if __name__ == "__main__":
    main()
