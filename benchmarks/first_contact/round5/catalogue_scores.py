"""Score a product catalogue with a trained text encoder and keep the best hits per query."""
import os
from itertools import islice

import torch
from torch import nn

TINY = os.environ.get("SMALL") == "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16 if DEVICE == "cuda" else torch.float32
VOCAB, LENGTH = (100, 12) if TINY else (16_384, 64)
DIM, HEADS, LAYERS = (16, 2, 1) if TINY else (768, 12, 36)
BATCH, STEPS = (4, 30) if TINY else (32, 200)
QUERIES, KEEP = 64, 10


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.places = nn.Parameter(torch.randn(LENGTH, DIM) * 0.02)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, ids):
        h = self.body(self.words(ids) + self.places)
        return nn.functional.normalize(h.mean(1), dim=-1)


def products():
    page = torch.randint(VOCAB, (16, BATCH, LENGTH), device=DEVICE)
    while True:
        yield from page


class Leaderboard:
    def __init__(self):
        self.best = torch.full((QUERIES, KEEP), -2.0, device=DEVICE, dtype=DTYPE)
        self.ids = torch.zeros(QUERIES, KEEP, dtype=torch.long, device=DEVICE)

    def merge(self, scores, first):
        fresh = torch.arange(first, first + scores.size(1), device=DEVICE).expand(QUERIES, -1)
        self.best, pick = torch.cat((self.best, scores), 1).topk(KEEP, 1)
        self.ids = torch.cat((self.ids, fresh), 1).gather(1, pick)


def scan(model, queries, board):  # flaw: grad-in-eval
    for n, ids in enumerate(islice(products(), STEPS)):
        vectors = model(ids)  # flaw: grad-in-eval
        board.merge((queries @ vectors.t()).detach(), n * BATCH)
        if n % 80 == 0:
            print("scanned", (n + 1) * BATCH)


def main():
    torch.manual_seed(0)
    model = TextEncoder().to(DEVICE, DTYPE).eval()
    queries = nn.functional.normalize(torch.randn(QUERIES, DIM, device=DEVICE, dtype=DTYPE), dim=-1)
    board = Leaderboard()
    scan(model, queries, board)
    print("first query:", board.ids[0].tolist())


if __name__ == "__main__":
    main()
