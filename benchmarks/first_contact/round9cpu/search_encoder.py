"""Encodes a catalogue into sentence vectors and answers queries from them."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM = 8000, 96


class SentenceEncoder(nn.Module):
    def __init__(self, heads=4, layers=2):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        layer = nn.TransformerEncoderLayer(DIM, heads, 4 * DIM, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        return F.normalize(self.encoder(self.words(tokens)).mean(1), dim=1)


def catalogue(n, generator):
    lengths = torch.randint(8, 40, (n,), generator=generator).tolist()
    return [torch.randint(VOCAB, (k,), generator=generator) for k in lengths]


def batches_of_equal_length(texts, batch):
    groups = {}
    for i, text in enumerate(texts):
        groups.setdefault(len(text), []).append(i)
    for rows in groups.values():
        for start in range(0, len(rows), batch):
            yield rows[start : start + batch]


class Index:
    def __init__(self, model):
        self.model = model.eval()
        self.vectors = None

    @torch.inference_mode()
    def build(self, texts, batch=64):
        self.vectors = torch.empty(len(texts), DIM)
        for rows in batches_of_equal_length(texts, batch):
            self.vectors[rows] = self.model(torch.stack([texts[i] for i in rows]))

    @torch.inference_mode()
    def search(self, queries, k=5):
        return (self.model(queries) @ self.vectors.T).topk(k, dim=1)


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    index = Index(SentenceEncoder())
    index.build(catalogue(24_000, generator))
    found = index.search(torch.randint(VOCAB, (16, 12), generator=generator))
    print(tuple(index.vectors.shape), found.indices[0].tolist())


if __name__ == "__main__":
    main()
