# Masked k-mer pre-training for genomic windows.
import argparse
import os

import torch
from torch import nn
from torch.nn import functional as F

tiny = os.environ.get("TINY") == "1"
ap = argparse.ArgumentParser()
ap.add_argument("--k", type=int, default=4 if tiny else 8)
ap.add_argument("--window", type=int, default=32 if tiny else 256)
ap.add_argument("--batch", type=int, default=4 if tiny else 32)
ap.add_argument("--dim", type=int, default=64 if tiny else 768)
ap.add_argument("--layers", type=int, default=2 if tiny else 6)
ap.add_argument("--steps", type=int, default=6 if tiny else 700)
args = ap.parse_args()

VOCAB = 4 ** args.k
HIDDEN = max(1, int(args.window * 0.15))
device = "cuda" if torch.cuda.is_available() else "cpu"


class Genome(nn.Module):
    def __init__(self):
        super().__init__()
        self.kmer = nn.Embedding(VOCAB, args.dim)
        self.where = nn.Embedding(args.window, args.dim)
        layer = nn.TransformerEncoderLayer(args.dim, args.dim // 64 or 1, 4 * args.dim, dropout=0.0,
                                           activation=F.gelu, batch_first=True, norm_first=True)
        self.trunk = nn.TransformerEncoder(layer, args.layers, nn.LayerNorm(args.dim), enable_nested_tensor=False)
        self.decode = nn.Sequential(nn.Linear(args.dim, args.dim), nn.GELU(), nn.LayerNorm(args.dim))
        self.vocab = nn.Linear(args.dim, VOCAB)

    def forward(self, kmers, spots):
        x = self.kmer(kmers) + self.where.weight
        x = self.decode(self.trunk(x))  # flaw: unused-logits
        x = self.vocab(x)  # flaw: unused-logits
        return torch.take_along_dim(x, spots.unsqueeze(-1), dim=1)  # flaw: unused-logits


def windows(pool, generator):
    """Endless (corrupted, positions, originals)."""
    n = pool.shape[0]
    while True:
        rows = torch.randint(n, (args.batch,), device=device, generator=generator)
        clean = pool[rows]
        score = torch.rand(clean.shape, device=device, generator=generator)
        spots = score.topk(HIDDEN, dim=1).indices
        yield clean.scatter(1, spots, 0), spots, clean.gather(1, spots)


torch.manual_seed(11)
model = Genome().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
rng = torch.Generator(device=device).manual_seed(5)
pool = torch.randint(1, VOCAB, (1024, args.window), device=device, generator=rng)
stream = windows(pool, rng)
losses = []
for step in range(args.steps):
    corrupted, spots, originals = next(stream)
    with torch.autocast(device, dtype=torch.bfloat16):
        scores = model(corrupted, spots)
        loss = F.cross_entropy(scores.flatten(0, 1).float(), originals.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    losses.append(loss.detach())
print("first %.3f last %.3f" % (losses[0].item(), torch.stack(losses[-5:]).mean().item()))
