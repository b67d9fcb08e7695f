"""Turns a corpus into sentence vectors."""
import torch
from torch import nn


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=30_000, dim=384, layers=48):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.mix = nn.ModuleList(nn.Linear(dim, dim) for _ in range(layers))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(layers))

    def forward(self, ids):
        x = self.words(ids)
        for norm, mix, ff in zip(self.norms, self.mix, self.ff):
            y = norm(x)
            x = x + mix(y.cumsum(1) / 64)
            x = x + ff(x)
        return nn.functional.normalize(x.mean(1), dim=-1)


class Index:
    def __init__(self, encoder, size, dim, device):
        self.encoder = encoder.eval()
        self.vectors = torch.zeros(size, dim, device=device, dtype=torch.bfloat16)

    def add(self, at, ids):  # flaw: grad-in-eval
        out = self.encoder(ids)  # flaw: grad-in-eval
        self.vectors[at : at + len(ids)] = out.detach()  # flaw: grad-in-eval


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    index = Index(SentenceEncoder().to(device, torch.bfloat16), 400 * 64, 384, device)
    texts = torch.randint(30_000, (8, 64, 64), device=device)
    for n in range(400):  # flaw: grad-in-eval
        index.add(n * 64, texts[n % 8])  # flaw: grad-in-eval
    print(index.vectors.float().norm().item())


if __name__ == "__main__":
    main()
