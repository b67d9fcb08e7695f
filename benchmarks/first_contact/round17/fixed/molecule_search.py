"""Nearest molecules for streams of query fingerprints."""
import os

import torch

TINY = bool(os.environ.get("TINY"))


class Library:
    def __init__(self, count, width, device):
        gen = torch.Generator(device).manual_seed(1)
        self.vectors = torch.randn(count, width, device=device, generator=gen).to(torch.bfloat16)
        self.vectors /= self.vectors.norm(dim=1, keepdim=True)

    def distances(self, queries):
        return 1.0 - (queries @ self.vectors.T).float()

    def __len__(self):
        return len(self.vectors)


class Searcher:
    def __init__(self, library, neighbours):
        self.library, self.neighbours = library, neighbours

    def ranking(self, distance):
        return distance.topk(self.neighbours, dim=-1, largest=False)

    def __call__(self, queries):
        return self.ranking(self.library.distances(queries))


def queries(rows, width, steps, device):
    gen = torch.Generator(device).manual_seed(2)
    for _ in range(steps):
        q = torch.randn(rows, width, device=device, generator=gen)
        yield (q / q.norm(dim=1, keepdim=True)).to(torch.bfloat16)


@torch.inference_mode()
def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count, width, rows, steps = (500, 16, 4, 5) if TINY else (1_000_000, 256, 64, 320)
    find = Searcher(Library(count, width, device), 50)
    nearest = torch.zeros((), device=device)
    votes = torch.zeros(count, device=device)
    for q in queries(rows, width, steps, device):
        values, order = find(q)
        nearest += values.mean()
        votes.index_add_(0, order.flatten(), torch.ones_like(values).flatten())
    print(f"mean distance {nearest.item() / steps:.4f}, named {int(votes.sum().item())}")


main()
