"""Checkpointed blocks, attention written by hand, a table that is gathered and scattered."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        scores = scores / q.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        mixed = weights @ v
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def main():
    torch.manual_seed(0)
    table = nn.Embedding(100_000, 512).cuda()
    blocks = nn.ModuleList(Attention(512, 8) for _ in range(4)).cuda()
    optimizer = torch.optim.SGD([*table.parameters(), *blocks.parameters()], lr=1e-3)
    counts = torch.zeros(100_000, device="cuda")
    while True:
        index = torch.randint(0, 100_000, (8, 512), device="cuda")
        counts.scatter_add_(0, index.flatten(), torch.ones(index.numel(), device="cuda"))
        h = table(index)
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=False)
        order = torch.sort(counts, descending=True).indices[:100]
        loss = h.square().mean() + 0.0 * table.weight[order].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
