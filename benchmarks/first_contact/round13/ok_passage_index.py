"""Embeds a passage corpus in bf16, then answers query batches by exact search in blocks."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
gpu = device.type == "cuda"
dtype = torch.bfloat16 if gpu else torch.float32
PASSAGES, TOKENS, DIM, LAYERS, HEADS, BATCH, K = (64, 16, 64, 2, 4, 16, 4) if TINY else (196608, 128, 768, 8, 12, 512, 8)
VOCAB = 1024 if TINY else 32768


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(0.02 * torch.randn(TOKENS, DIM))
        self.layers = nn.Sequential(*(EncoderLayer() for _ in range(LAYERS)))

    def forward(self, ids):
        return F.normalize(self.layers(self.tok(ids) + self.pos).mean(1), dim=-1)


class Index:
    def __init__(self, encode, size):
        self.encode = encode
        self.bank = torch.empty(size, DIM, device=device, dtype=dtype)

    def fill(self, corpus):
        for ids, slot in zip(corpus.split(BATCH), self.bank.split(BATCH)):
            slot.copy_(self.encode(ids.to(device, non_blocking=True)))

    def search(self, ids):
        return torch.topk(self.encode(ids) @ self.bank.t(), K, dim=1)


@torch.inference_mode()
def main():
    torch.manual_seed(64)
    torch.set_float32_matmul_precision("high")
    model = Encoder().to(device, dtype).eval()
    encode = torch.compile(model) if gpu else model
    corpus = torch.randint(VOCAB, (PASSAGES, TOKENS), generator=torch.Generator().manual_seed(2))
    if gpu:
        corpus = corpus.pin_memory()
    index = Index(encode, PASSAGES)
    index.fill(corpus)
    hits = torch.zeros((), device=device)
    rounds = 4 if TINY else 60
    for r in range(rounds):
        lo = (r * BATCH) % PASSAGES
        queries = corpus[lo:lo + BATCH].to(device, non_blocking=True)
        best = index.search(queries).indices[:, 0]
        hits += (best == torch.arange(lo, lo + BATCH, device=device)).float().mean()
    print(f"recall@1 {hits.item() / rounds:.4f}")


if __name__ == "__main__":
    main()
