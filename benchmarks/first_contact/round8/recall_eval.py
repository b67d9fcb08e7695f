"""Recall@k, MRR and nDCG of embedded queries against a large gallery, in blocks of queries."""
import torch

HAS_CUDA = torch.cuda.is_available()
torch.backends.cuda.matmul.allow_tf32 = True


class RankingMetrics:
    def __init__(self, ks, device):
        self.ks = ks
        self.depth = max(ks)
        self.recall = torch.zeros(len(ks), device=device)
        self.mrr = torch.zeros((), device=device)
        self.ndcg = torch.zeros((), device=device)
        rank = torch.arange(1, self.depth + 1, device=device)
        self.reciprocal = 1.0 / rank
        self.discount = 1.0 / torch.log2(rank + 1.0)
        self.ideal = self.discount.cumsum(0)
        self.count = 0

    def update(self, top_labels, labels, relevant):
        hit = (top_labels == labels[:, None]).float()
        seen = hit.cummax(1).values
        self.recall += torch.stack([seen[:, k - 1].sum() for k in self.ks])
        self.mrr += (hit * self.reciprocal).amax(1).sum()
        best = self.ideal[relevant[labels].clamp(max=self.depth) - 1]
        self.ndcg += ((hit @ self.discount) / best).sum()
        self.count += len(labels)

    def result(self):
        out = {f"R@{k}": v for k, v in zip(self.ks, (self.recall / self.count).tolist())}
        out["MRR"] = (self.mrr / self.count).item()
        out["nDCG"] = (self.ndcg / self.count).item()
        return out


class Projector(torch.nn.Module):
    """The trained head, applied to stored backbone features of the queries."""

    def __init__(self, n_in, width, n_out):
        super().__init__()
        self.up = torch.nn.Linear(n_in, width)
        self.mid = torch.nn.Linear(width, width)
        self.down = torch.nn.Linear(width, n_out)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(x))
        h = torch.nn.functional.gelu(self.mid(h))
        return torch.nn.functional.normalize(self.down(h), dim=1)


@torch.inference_mode()
def main():
    device = torch.device("cuda" if HAS_CUDA else "cpu")
    n_gallery, n_query, block = (262144, 786432, 2048) if HAS_CUDA else (256, 64, 16)
    n_in, width, dim, classes = (2048, 8192, 512, 20000) if HAS_CUDA else (32, 64, 16, 20)
    dtype = torch.bfloat16 if HAS_CUDA else torch.float32
    torch.manual_seed(0)
    head = Projector(n_in, width, dim).to(device, dtype).eval()
    centres = torch.randn(classes, n_in, device=device, dtype=dtype)

    def sample(labels):
        return centres[labels] + torch.randn(len(labels), n_in, device=device, dtype=dtype)

    gallery_labels = torch.randint(classes, (n_gallery,), device=device)
    gallery = torch.cat([head(sample(part)) for part in gallery_labels.split(block * 4)])
    relevant = torch.bincount(gallery_labels, minlength=classes).clamp_(min=1)
    query_labels = torch.randint(classes, (n_query,), device=device)
    query_feats = sample(query_labels)

    metrics = RankingMetrics((1, 5, 10), device)
    for feats, labels in zip(query_feats.split(block), query_labels.split(block)):
        scores = head(feats) @ gallery.t()
        top = torch.topk(scores, metrics.depth, dim=1).indices
        metrics.update(gallery_labels[top], labels, relevant)
    print("  ".join(f"{name} {value:.4f}" for name, value in metrics.result().items()))


if __name__ == "__main__":
    main()
