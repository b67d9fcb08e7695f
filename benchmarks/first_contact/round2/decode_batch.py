"""Greedy decoding of many prompts at once."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, past):
        b, t, d = x.shape
        q, k, v = self.to_qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)  # flaw: cat-in-loop|none-yet(static-kv-cache)
            v = torch.cat([past[1], v], dim=2)  # flaw: cat-in-loop|none-yet(static-kv-cache)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.to_out(y.transpose(1, 2).reshape(b, t, d)), (k, v)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn_norm, self.attn = nn.LayerNorm(dim), Attention(dim, heads)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, past):
        a, past = self.attn(self.attn_norm(x), past)
        x = x + a
        return x + self.mlp(x), past


class Decoder(nn.Module):
    def __init__(self, vocab=8192, dim=1024, heads=16, layers=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, past):
        x, present = self.embed(ids), []
        for layer, p in zip(self.layers, past):
            x, p = layer(x, p)
            present.append(p)
        return self.head(x[:, -1]), present


@torch.inference_mode()
def generate(model, prompt, new):
    past = [None] * len(model.layers)
    ids, out = prompt, []
    for _ in range(new):
        logits, past = model(ids, past)
        ids = logits.argmax(-1, keepdim=True)
        out.append(ids)
    return torch.cat(out, 1)


def main():
    model = Decoder().to(device, dtype).eval()
    prompt = torch.randint(0, 8192, (96, 512), device=device)
    t0, n = time.time(), 0
    while time.time() - t0 < 40 and n < 40:
        tokens = generate(model, prompt, 128)
        n += 1
        print(n, tuple(tokens.shape), int(tokens[0, -1]))


if __name__ == "__main__":
    main()
