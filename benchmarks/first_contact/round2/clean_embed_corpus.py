"""Embeds a corpus with an encoder, keeps the vectors in one preallocated table."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab=8192, d=1024, h=16, n=6):
        super().__init__()
        self.h = h
        self.emb = nn.Embedding(vocab, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 * n))
        self.qkv = nn.ModuleList(nn.Linear(d, 3 * d) for _ in range(n))
        self.out = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(n))

    def forward(self, ids):
        x = self.emb(ids)
        b, t, d = x.shape
        for i in range(len(self.ff)):
            q, k, v = self.qkv[i](self.norms[2 * i](x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v)
            x = x + self.out[i](y.transpose(1, 2).reshape(b, t, d))
            x = x + self.ff[i](self.norms[2 * i + 1](x))
        return F.normalize(x.mean(1), dim=-1)


def chunks(ids, size):
    for start in range(0, len(ids), size):
        yield start, ids[start:start + size]


@torch.inference_mode()
def embed(model, ids, size, table):
    for start, part in chunks(ids, size):
        table[start:start + len(part)] = model(part)
    return table


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch = 128
    n = 64 * batch if device == "cuda" else batch
    model = Encoder().to(device, torch.bfloat16).eval()
    ids = torch.randint(0, 8192, (n, 128), device=device)
    table = torch.empty(n, 1024, device=device, dtype=torch.bfloat16)
    begin = time.time()
    while time.time() - begin < 40:
        embed(model, ids, batch, table)
        print(f"{time.time() - begin:.1f}s", table[-1, 0].item())


if __name__ == "__main__":
    main()
