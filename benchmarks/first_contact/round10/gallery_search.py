"""Recall of image retrieval: embed queries, compare with a gallery in blocks, keep the best."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class PatchEmbedder(nn.Module):
    """Small attention-pooling network over precomputed patch features."""

    def __init__(self, dim, heads, depth, out):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth))
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.proj = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth)
        )
        self.out = nn.Linear(dim, out)

    def forward(self, x):
        b, n, d = x.shape
        for i, (qkv, proj, mlp) in enumerate(zip(self.qkv, self.proj, self.mlp)):
            q, k, v = qkv(self.norms[2 * i](x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            x = x + proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
            x = x + mlp(self.norms[2 * i + 1](x))
        return F.normalize(self.out(x.mean(1)), dim=-1)


def search(queries, gallery, k, block):
    """Best k gallery rows of each query; the gallery passes in blocks."""
    values, indices = [], []
    for start in range(0, len(gallery), block):
        similarity = queries @ gallery[start : start + block].T
        best = similarity.topk(k, dim=1)
        values.append(best.values)
        indices.append(best.indices + start)
    values, indices = torch.cat(values, 1), torch.cat(indices, 1)
    order = values.topk(k, dim=1).indices
    return indices.gather(1, order)


@torch.inference_mode()
def evaluate(args, device):
    dtype = torch.bfloat16
    model = PatchEmbedder(args.dim, 8, args.depth, 512).eval().to(device, dtype)
    gallery = F.normalize(torch.randn(args.gallery, 512, device=device), dim=-1).to(dtype)
    features = torch.randn(4, args.batch, args.patches, args.dim, device=device, dtype=dtype)
    truth = torch.randint(0, args.gallery, (args.rounds, args.batch), device=device)
    hits = torch.zeros(args.k, device=device)
    for r in range(args.rounds):
        queries = model(features[r % 4])
        found = search(queries, gallery, args.k, args.block)
        hits += (found == truth[r][:, None]).sum(0)
    recall = hits.cumsum(0) / (args.rounds * args.batch)
    return recall.tolist()


def main():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--gallery", type=int, default=131072 if cuda else 256)
    parser.add_argument("--block", type=int, default=65536 if cuda else 128)
    parser.add_argument("--batch", type=int, default=512 if cuda else 4)
    parser.add_argument("--patches", type=int, default=196 if cuda else 9)
    parser.add_argument("--dim", type=int, default=512 if cuda else 32)
    parser.add_argument("--depth", type=int, default=6 if cuda else 1)
    parser.add_argument("--rounds", type=int, default=200 if cuda else 2)
    parser.add_argument("--k", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    recall = evaluate(args, torch.device("cuda" if cuda else "cpu"))
    print("recall at 1, 5, 10:", *(f"{recall[k - 1]:.5f}" for k in (1, 5, 10)))


if __name__ == "__main__":
    main()
