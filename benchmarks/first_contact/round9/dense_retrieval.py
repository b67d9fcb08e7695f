"""Evaluate a dense retriever: encode queries, score them against the whole corpus, report recall."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def build_args():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus-size", type=int, default=1_000_000 if cuda else 500)
    parser.add_argument("--dim", type=int, default=256 if cuda else 32)
    parser.add_argument("--width", type=int, default=512 if cuda else 32)
    parser.add_argument("--layers", type=int, default=6 if cuda else 1)
    parser.add_argument("--query-length", type=int, default=128 if cuda else 8)
    parser.add_argument("--batch-size", type=int, default=128 if cuda else 8)
    parser.add_argument("--batches", type=int, default=110 if cuda else 4)
    parser.add_argument("--k", type=int, nargs="+", default=[1, 10, 100] if cuda else [1, 5, 20])
    return parser.parse_args()


class QueryEncoder(nn.Module):
    def __init__(self, vocab, width, layers, dim):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.heads = max(1, width // 64)
        self.project = nn.Linear(width, dim)

    def forward(self, ids):
        x = self.tokens(ids)
        b, t, w = x.shape
        for i, (qkv, out, mlp) in enumerate(zip(self.qkv, self.out, self.mlp)):
            q, k, v = qkv(self.norms[2 * i](x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w))
            x = x + mlp(self.norms[2 * i + 1](x))
        return F.normalize(self.project(x.mean(1)), dim=-1)


class FlatIndex:
    """Exact inner-product search over a corpus that fits on one device."""

    def __init__(self, vectors):
        self.vectors = vectors

    def search(self, queries, k):
        scores = queries @ self.vectors.T
        ranking = torch.argsort(scores, dim=1, descending=True)  # flaw: full-sort
        return ranking[:, :k]  # flaw: full-sort


class RecallMeter:
    def __init__(self, ks, device):
        self.hits = {k: torch.zeros((), device=device) for k in ks}
        self.count = 0

    def update(self, ranking, gold):
        match = ranking == gold[:, None]
        for k, total in self.hits.items():
            total += match[:, :k].any(1).sum()
        self.count += len(gold)

    def summary(self):
        return {f"recall@{k}": round(v.item() / self.count, 4) for k, v in self.hits.items()}


@torch.inference_mode()
def evaluate(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    encoder = QueryEncoder(30000, args.width, args.layers, args.dim).to(device, torch.bfloat16).eval()
    corpus = F.normalize(torch.randn(args.corpus_size, args.dim, device=device), dim=-1).to(torch.bfloat16)
    queries = torch.randint(30000, (args.batches, args.batch_size, args.query_length), device=device)

    index = FlatIndex(corpus)
    meter = RecallMeter(args.k, device)
    for i in range(args.batches):
        embedding = encoder(queries[i])
        gold = torch.randint(args.corpus_size, (args.batch_size,), device=device)
        embedding = F.normalize(embedding + 0.6 * corpus[gold], dim=-1)
        meter.update(index.search(embedding, max(args.k)), gold)
    return meter.summary()


if __name__ == "__main__":
    print(evaluate(build_args()))
