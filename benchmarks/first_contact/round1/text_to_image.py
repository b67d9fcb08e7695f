"""Denoises latent tokens under the guidance of text tokens (a toy text-to-image model)."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=640)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--latent", type=int, default=2048)
    p.add_argument("--words", type=int, default=512)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--steps", type=int, default=350)
    return p.parse_args()


def heads_first(x, n):
    return x.unflatten(-1, (n, -1)).movedim(-2, 1)


def look_at(query, key, value, dropout, training):
    temperature = math.sqrt(query.shape[-1])
    p = F.softmax((query / temperature) @ key.mT, dim=-1)  # flaw: hand-written-attention
    if dropout:
        p = F.dropout(p, dropout, training)  # flaw: hand-written-attention
    return p @ value  # flaw: hand-written-attention


class Cross(nn.Module):
    def __init__(self, dim, n=10, drop=0.1):
        super().__init__()
        self.n, self.drop = n, drop
        self.wq = nn.Linear(dim, dim)
        self.wkv = nn.Linear(dim, 2 * dim)
        self.wo = nn.Linear(dim, dim)

    def forward(self, x, context):
        key, value = self.wkv(context).chunk(2, dim=-1)
        out = look_at(
            heads_first(self.wq(x), self.n),
            heads_first(key, self.n),
            heads_first(value, self.n),
            self.drop,
            self.training,
        )
        return self.wo(out.movedim(1, -2).flatten(-2))


class Denoiser(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.time = nn.Linear(1, a.dim)
        self.cross = nn.ModuleList(Cross(a.dim) for _ in range(a.layers))
        self.norm = nn.ModuleList(nn.LayerNorm(a.dim) for _ in range(2 * a.layers))
        self.ff = nn.ModuleList(
            nn.Sequential(nn.Linear(a.dim, 4 * a.dim), nn.SiLU(), nn.Linear(4 * a.dim, a.dim))
            for _ in range(a.layers)
        )

    def forward(self, z, t, words):
        z = z + self.time(t[:, None, None])
        for i, (cross, ff) in enumerate(zip(self.cross, self.ff)):
            z = z + cross(self.norm[2 * i](z), words)
            z = z + ff(self.norm[2 * i + 1](z))
        return z


def main(a):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Denoiser(a).to(device).train()
    optim = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    clean = torch.randn(a.batch_size, a.latent, a.dim, device=device)
    words = torch.randn(a.batch_size, a.words, a.dim, device=device)
    for _ in range(a.steps):
        t = torch.rand(a.batch_size, device=device)
        noise = torch.randn_like(clean)
        noisy = torch.lerp(clean, noise, t[:, None, None])
        with torch.autocast(device, torch.bfloat16):
            guess = model(noisy, t, words)
            loss = F.mse_loss(guess, noise - clean)
        optim.zero_grad()
        loss.backward()
        optim.step()


main(get_args())
