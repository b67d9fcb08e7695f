"""Streaming nearest neighbour search with quantised lists (IVF), measured against the exact answer."""
import torch

QUERIES = 600


class InvertedFile:
    def __init__(self, vectors, lists, gen):
        self.centres = vectors[torch.randperm(len(vectors), generator=gen)[:lists]].clone()
        for _ in range(5):  # Lloyd iterations
            owner = torch.cdist(vectors, self.centres).argmin(1)
            total = torch.zeros_like(self.centres).index_add_(0, owner, vectors)
            self.centres = total / torch.bincount(owner, minlength=lists).clamp(min=1).unsqueeze(1)
        owner = torch.cdist(vectors, self.centres).argmin(1)
        order = owner.argsort()
        ends = torch.bincount(owner, minlength=lists).cumsum(0)
        self.starts, self.ends = torch.cat([ends.new_zeros(1), ends[:-1]]), ends
        self.ids, self.vectors = order, vectors[order].contiguous()

    def search(self, query, probes, k):
        """One query at a time: the lists have different lengths."""
        near = torch.mv(self.centres, query).topk(probes).indices
        spans = list(zip(self.starts[near].tolist(), self.ends[near].tolist()))
        score = torch.cat([torch.mv(self.vectors[a:b], query) for a, b in spans])
        ids = torch.cat([self.ids[a:b] for a, b in spans])
        return ids[score.topk(k).indices]


@torch.inference_mode()
def main():
    gen = torch.Generator().manual_seed(8)
    vectors = torch.nn.functional.normalize(torch.randn(24_000, 96, generator=gen), dim=1)
    index = InvertedFile(vectors, 40, gen)
    found = torch.zeros(())
    for q in range(QUERIES):
        batch = torch.nn.functional.normalize(vectors[torch.randint(0, len(vectors), (12,), generator=gen)]
                                              + 0.05 * torch.randn(12, 96, generator=gen), dim=1)
        exact = (batch @ vectors.T).topk(10, dim=1).indices
        approx = torch.stack([index.search(row, 6, 10) for row in batch])
        found += (approx[:, :, None] == exact[:, None, :]).any(2).float().mean()
        if (q + 1) % 300 == 0:
            print(f"{q + 1} batches, recall {found.item() / (q + 1):.4f}")


main()
