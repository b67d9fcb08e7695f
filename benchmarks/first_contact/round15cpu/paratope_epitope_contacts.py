"""Antibody-antigen contact prediction: residues of both chains look at each other with a distance bias."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
RESIDUES = 48 if TINY else 512
STEPS = 4 if TINY else 110
HEADS, WIDTH = 4, 128


class ResidueMixer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.joint = nn.Linear(width, 3 * width, bias=False)
        self.close = nn.Linear(width, width)

    def forward(self, x, bias):
        n, t, c = x.shape
        q, k, v = (
            part.reshape(n, t, self.heads, -1).transpose(1, 2).flatten(0, 1)
            for part in self.joint(self.norm(x)).chunk(3, -1)
        )
        energy = torch.baddbmm(bias, q, k.mT, alpha=q.shape[-1] ** -0.5)  # flaw: hand-written-attention
        unnormed = torch.exp(energy - energy.amax(-1, keepdim=True))  # flaw: hand-written-attention
        mixed = torch.bmm(unnormed / unnormed.sum(-1, keepdim=True), v)  # flaw: hand-written-attention
        return x + self.close(mixed.unflatten(0, (n, self.heads)).transpose(1, 2).reshape(n, t, c))


class Paratope(nn.Module):
    def __init__(self):
        super().__init__()
        self.residue = nn.Embedding(21, WIDTH)
        self.mixers = nn.ModuleList(ResidueMixer(WIDTH, HEADS) for _ in range(2))
        self.touch = nn.Linear(WIDTH, 1)

    def forward(self, chain, bias):
        x = self.residue(chain)
        for mixer in self.mixers:
            x = mixer(x, bias)
        return self.touch(x).squeeze(-1)


def complexes(rng):
    while True:
        walk = np.cumsum(rng.normal(size=(2, RESIDUES, 3)), 1).astype(np.float32)
        coords = torch.from_numpy(walk)
        bias = -0.05 * torch.cdist(coords, coords)
        chain = torch.from_numpy(rng.integers(0, 21, (2, RESIDUES)))
        yield chain, bias.repeat_interleave(HEADS, 0), (chain.roll(1, 1) % 3 == 0).float()


def main():
    torch.manual_seed(4)
    net = Paratope()
    adam = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    stream = complexes(np.random.default_rng(4))
    for step in range(STEPS):
        chain, bias, contact = next(stream)
        loss = F.binary_cross_entropy_with_logits(net(chain, bias), contact)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        if step % 25 == 0:
            print(f"{step:4d} {loss.item():.4f}")
    print(f"last {loss.item():.4f}")


main()
