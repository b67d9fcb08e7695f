"""Contrastive training of a shared query and passage encoder (InfoNCE, in-batch negatives)."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab, dim, layers, heads, max_len):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Parameter(torch.randn(max_len, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            dim, heads, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        return F.normalize(self.norm(self.body(x).mean(dim=1)), dim=-1)


def info_nce(q, p, temperature):
    logits = q @ p.T / temperature
    labels = torch.arange(len(q), device=q.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def synthetic_pairs(vocab, count, q_len, p_len, device):
    passages = torch.randint(vocab, (count, p_len), device=device)
    queries = passages[:, :q_len].clone()
    noise = torch.rand(queries.shape, device=device) < 0.15
    queries[noise] = torch.randint(vocab, (int(noise.sum()),), device=device)
    return queries, passages


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=128 if gpu else 4)
    parser.add_argument("--steps", type=int, default=90 if gpu else 5)
    parser.add_argument("--dim", type=int, default=512 if gpu else 32)
    parser.add_argument("--layers", type=int, default=6 if gpu else 2)
    parser.add_argument("--heads", type=int, default=8 if gpu else 2)
    parser.add_argument("--vocab", type=int, default=30000 if gpu else 200)
    parser.add_argument("--query-len", type=int, default=32 if gpu else 8)
    parser.add_argument("--passage-len", type=int, default=192 if gpu else 16)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if gpu else "cpu")  # flaw: fp32-matmul
    encoder = Encoder(args.vocab, args.dim, args.layers, args.heads, args.passage_len).to(device)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=args.lr, fused=True)
    queries, passages = synthetic_pairs(
        args.vocab, args.batch * 40, args.query_len, args.passage_len, device
    )

    encoder.train()
    started = time.perf_counter()
    for step in range(args.steps):
        rows = torch.randint(len(queries), (args.batch,), device=device)
        q = encoder(queries[rows])  # flaw: fp32-matmul
        p = encoder(passages[rows])  # flaw: fp32-matmul
        loss = info_nce(q, p, args.temperature)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 19 or step + 1 == args.steps:
            passed = time.perf_counter() - started
            print(f"step {step + 1} loss {loss.item():.4f} ({passed:.1f} s)")


if __name__ == "__main__":
    main()
