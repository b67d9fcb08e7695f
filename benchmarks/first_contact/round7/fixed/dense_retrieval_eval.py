"""Exact search over a passage index: mean reciprocal rank and recall of a query set."""

import torch

if torch.cuda.is_available():
    device, dtype = "cuda", torch.bfloat16
    n_passages, n_queries, dim, batch = 300_000, 25_600, 768, 256
else:
    device, dtype = "cpu", torch.float32
    n_passages, n_queries, dim, batch = 600, 64, 16, 16
TOP = 100


def build_index(n, dim):
    vectors = torch.randn(n, dim, device=device, dtype=dtype)
    return torch.nn.functional.normalize(vectors, dim=-1)


def make_queries(index, n):
    gold = torch.randint(len(index), (n,), device=device)
    noisy = index[gold] + 0.12 * torch.randn(n, index.size(1), device=device, dtype=dtype)
    return torch.nn.functional.normalize(noisy, dim=-1), gold


def search(index, queries):
    scores = queries @ index.T
    return scores.topk(TOP, dim=1).indices


@torch.inference_mode()
def evaluate(index, queries, gold):
    reciprocal = torch.zeros((), device=device)
    found = torch.zeros((), device=device)
    ranks = torch.arange(1, TOP + 1, device=device)
    for start in range(0, len(queries), batch):
        stop = start + batch
        hit = search(index, queries[start:stop]) == gold[start:stop, None]
        reciprocal += (hit / ranks).sum()
        found += hit.sum()
    return reciprocal.item() / len(queries), found.item() / len(queries)


torch.manual_seed(5)
passages = build_index(n_passages, dim)
questions, answers = make_queries(passages, n_queries)
mrr, recall = evaluate(passages, questions, answers)
print(f"MRR {mrr:.4f}  recall@{TOP} {recall:.4f}")
