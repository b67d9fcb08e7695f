"""Encode a passage collection into a multi-vector (late interaction) index and run queries against it."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
on_gpu = torch.cuda.is_available()
device = torch.device("cuda" if on_gpu else "cpu")

VOCAB = 30000 if on_gpu else 100
DOC_LEN = 180 if on_gpu else 12
QUERY_LEN = 32 if on_gpu else 4
DIM = 384 if on_gpu else 32
OUT = 128 if on_gpu else 16
LAYERS = 4 if on_gpu else 1
N_DOCS = 80_000 if on_gpu else 64
BATCH = 512 if on_gpu else 8
N_QUERIES = 32 if on_gpu else 2


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.ln2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class TokenEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(512, DIM)
        self.layers = nn.ModuleList(EncoderLayer(DIM, DIM // 64 or 1) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.proj = nn.Linear(DIM, OUT, bias=False)
        self.register_buffer("positions", torch.arange(512), persistent=False)

    def forward(self, tokens):
        x = self.tok(tokens) + self.pos(self.positions[: tokens.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.proj(self.norm(x)), dim=-1)


@torch.inference_mode()
def build_index(model, docs):
    index = torch.empty(0, DOC_LEN, OUT, device=device)  # flaw: cat-in-loop
    for i, start in enumerate(range(0, len(docs), BATCH)):
        emb = model(docs[start : start + BATCH])
        index = torch.cat([index, emb.float()])  # flaw: cat-in-loop
        if i % 40 == 0:
            print(f"  encoded {start + BATCH} / {len(docs)}")
    return index


@torch.inference_mode()
def search(model, index, queries, k=10):
    q = model(queries).float()
    flat = index.view(-1, OUT)
    hits = []
    for one in q:
        sim = (flat @ one.t()).view(len(index), DOC_LEN, -1)
        hits.append(sim.amax(1).sum(-1).topk(k).indices)
    return torch.stack(hits)


def main():
    torch.manual_seed(0)
    model = TokenEncoder().to(device).eval()
    if on_gpu:
        model = model.bfloat16()
    docs = torch.randint(VOCAB, (N_DOCS, DOC_LEN), device=device)
    index = build_index(model, docs)
    gib = index.numel() * index.element_size() / 2**30
    print(f"index of {len(index)} passages, {gib:.2f} GiB, {math.prod(index.shape[:2])} vectors")
    queries = docs[:N_QUERIES, :QUERY_LEN]
    hits = search(model, index, queries)
    found = (hits == torch.arange(N_QUERIES, device=device)[:, None]).any(1)
    print(f"recall@10 {found.float().mean().item():.3f}  checksum {index.sum().item():.3f}")


if __name__ == "__main__":
    main()
