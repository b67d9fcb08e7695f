"""Recall of a product search encoder on a corpus that is scanned in large slices."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
half = torch.bfloat16 if dev == "cuda" else torch.float32
CORPUS, SLICE, DIM, RAW, QUERIES, BATCHES, KEEP = (1024, 256, 64, 64, 32, 3, 8) if tiny else (1 << 20, 1 << 17, 768, 512, 4096, 400, 32)


class QueryEncoder(nn.Sequential):
    def __init__(self, raw, dim):
        super().__init__(nn.Linear(raw, 4 * dim), nn.GELU(), nn.Linear(4 * dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.LayerNorm(dim))


class Corpus:
    def __init__(self, encoder):
        gen = torch.Generator(dev).manual_seed(0)
        self.raw = torch.randn(CORPUS, RAW, device=dev, generator=gen, dtype=half)
        self.gen = gen
        self.vectors = torch.cat([encode(encoder, part) for part in self.raw.split(SLICE)])

    def questions(self):
        gold = torch.randint(CORPUS, (QUERIES,), device=dev, generator=self.gen)
        noise = torch.randn(QUERIES, RAW, device=dev, generator=self.gen, dtype=half)
        return self.raw[gold] + 0.7 * noise, gold


def encode(encoder, raw):
    return F.normalize(encoder(raw), dim=1)


def search(vectors, queries, keep):
    values, places = [], []
    for offset in range(0, len(vectors), SLICE):
        v, i = torch.topk(queries @ vectors[offset:offset + SLICE].T, keep, dim=1, sorted=False)
        values.append(v)
        places.append(i + offset)
    v, at = torch.cat(values, 1).topk(keep, dim=1)
    return torch.cat(places, 1).gather(1, at)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    encoder = QueryEncoder(RAW, DIM).to(dev, half).eval()
    corpus = Corpus(encoder)
    found = torch.zeros(2, dtype=torch.long, device=dev)
    for _ in range(BATCHES):
        questions, gold = corpus.questions()
        hits = search(corpus.vectors, encode(encoder, questions), KEEP) == gold[:, None]
        found += torch.stack([hits[:, 0].sum(), hits.any(1).sum()])
    top1, topk = (found / (BATCHES * QUERIES)).tolist()
    print(f"recall@1 {top1:.4f} recall@{KEEP} {topk:.4f}")


if __name__ == "__main__":
    main()
