"""Residue contact prediction: a protein encoder followed by an outer-product head."""
import math

import torch
from torch import nn

torch.set_num_threads(1)
STEPS = 150
AMINO, WIDTH, HEADS = 21, 64, 8


class ResidueAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.h, self.d = heads, width // heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_kv = nn.Linear(width, 2 * width, bias=False)
        self.merge = nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        q = self.to_q(x).view(b, n, self.h, self.d).transpose(1, 2)
        k, v = (t.view(b, n, self.h, self.d).transpose(1, 2) for t in self.to_kv(x).chunk(2, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.merge(mixed.transpose(1, 2).reshape(b, n, w))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = nn.LayerNorm(WIDTH)
        self.attn = ResidueAttention(WIDTH, HEADS)
        self.post = nn.LayerNorm(WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attn(self.pre(x))
        return x + self.ff(self.post(x))


class ContactNet(nn.Module):
    def __init__(self, depth=2, length=320):
        super().__init__()
        self.embed = nn.Embedding(AMINO, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(length, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(depth)))
        self.left, self.right = nn.Linear(WIDTH, 16), nn.Linear(WIDTH, 16)

    def forward(self, seq):
        h = self.layers(self.embed(seq) + self.position)
        return self.left(h) @ self.right(h).transpose(1, 2)


def helix_pairs(length):
    i = torch.arange(length)
    gap = (i[:, None] - i[None, :]).abs()
    return ((gap == 4) | (gap == 3)).float()


torch.manual_seed(6)
gen = torch.Generator().manual_seed(6)
model = ContactNet()
target = helix_pairs(320).expand(2, -1, -1)
opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
for step in range(STEPS):
    seq = torch.randint(0, AMINO, (2, 320), generator=gen)
    loss = nn.functional.binary_cross_entropy_with_logits(model(seq), target)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 50 == 49:
        print(f"step {step + 1} bce {loss.item():.5f}")
