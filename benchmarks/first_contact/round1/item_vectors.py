"""Learns vectors for two million items from pairs that were bought together."""
import torch
import torch.nn.functional as F
from torch import nn


class Pairs(nn.Module):
    def __init__(self, items=2_000_000, dim=256):
        super().__init__()
        self.left = nn.Embedding(items, dim)  # flaw: none-yet(dense-embedding-gradient)
        self.right = nn.Embedding(items, dim)  # flaw: none-yet(dense-embedding-gradient)

    def forward(self, a, b):
        return self.left(a) @ self.right(b).T


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pairs = Pairs().to(device)
    opt = torch.optim.SGD(pairs.parameters(), lr=0.5, fused=True)
    same = torch.arange(4096, device=device)
    a, b = torch.randint(2_000_000, (2, 64, 4096), device=device)
    for i in range(400):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(pairs(a[i % 64], b[i % 64]), same)
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
