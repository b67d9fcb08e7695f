"""Fills a bank of protein embeddings for a nearest-neighbour search."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
WIDTH, HEADS, DEPTH, RESIDUES, BATCH, BATCHES = (32, 2, 2, 32, 2, 6) if TINY else (1024, 16, 24, 512, 40, 240)
ALPHABET = 32


class ProteinLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.back = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        qkv = self.qkv(self.attn_norm(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        x = x + self.back(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.mlp_norm(x))))


class ProteinEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.residue = nn.Embedding(ALPHABET, WIDTH)
        self.place = nn.Parameter(torch.randn(RESIDUES, WIDTH) * 0.02)
        self.layers = nn.Sequential(*[ProteinLayer() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, sequence):
        return self.norm(self.layers(self.residue(sequence) + self.place))


class Bank:
    def __init__(self, encoder, size, device):
        self.encoder = encoder.eval()
        self.vectors = torch.zeros(size, WIDTH, device=device, dtype=torch.bfloat16)
        self.filled = 0

    def add(self, sequences):  # flaw: grad-in-eval
        states = self.encoder(sequences)  # flaw: grad-in-eval
        pooled = F.normalize(states.mean(1).float(), dim=-1)  # flaw: grad-in-eval
        end = self.filled + len(sequences)
        self.vectors[self.filled:end] = pooled.detach()  # flaw: grad-in-eval
        self.filled = end


def main():
    torch.manual_seed(9)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder = ProteinEncoder().to(device, torch.bfloat16)
    bank = Bank(encoder, BATCHES * BATCH, device)
    library = torch.randint(ALPHABET, (BATCHES * BATCH, RESIDUES), device=device)
    for sequences in library.split(BATCH):  # flaw: grad-in-eval
        bank.add(sequences)
    similarity = bank.vectors[:BATCH] @ bank.vectors.T
    print("filled", bank.filled, "mean similarity", round(similarity.float().mean().item(), 3))
    if device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2 ** 30:.1f} GiB")


if __name__ == "__main__":
    main()
