"""Aligns embeddings of sounds and pictures (both precomputed features) by contrast."""

import os
from types import SimpleNamespace as NS

import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = NS(pairs=24576, batch=8192, sound=512, sight=1024, hidden=4096, out=512, epochs=30)
if os.environ.get("SMALL"):
    cfg = NS(pairs=48, batch=16, sound=16, sight=16, hidden=32, out=16, epochs=10)
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")


class Tower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.hidden), nn.GELU(), nn.Linear(cfg.hidden, cfg.out)
        )

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


class Pairing(nn.Module):
    def __init__(self):
        super().__init__()
        self.hear, self.see = Tower(cfg.sound), Tower(cfg.sight)
        self.temperature = nn.Parameter(torch.tensor(2.5))

    def forward(self, sound, sight):
        scores = self.hear(sound) @ self.see(sight).t() * self.temperature.exp()
        goal = torch.arange(len(scores), device=scores.device)
        return (F.cross_entropy(scores, goal) + F.cross_entropy(scores.t(), goal)) / 2


class OnDevice:
    """The whole set fits, so it lives on the device and is shuffled there."""

    def __init__(self, *tensors):
        self.tensors = [t.to(device) for t in tensors]

    def epoch(self):
        order = torch.randperm(len(self.tensors[0]), device=device)
        for rows in order.split(cfg.batch):
            yield [t[rows] for t in self.tensors]


def features():
    g = torch.Generator().manual_seed(0)
    sound = torch.randn(cfg.pairs, cfg.sound, generator=g)
    sight = torch.randn(cfg.pairs, cfg.sight, generator=g)
    return sound.bfloat16(), sight.bfloat16()


def main():
    torch.manual_seed(0)
    data = OnDevice(*features())
    net = Pairing().to(device)
    opt = torch.optim.AdamW(net.parameters(), 3e-4, fused=True)
    contrast = torch.compile(net, disable=not cuda)
    for epoch in range(cfg.epochs):
        total = torch.zeros((), device=device)
        for sound, sight in data.epoch():
            with torch.autocast(device.type, torch.bfloat16):
                loss = contrast(sound, sight)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: {total.item() * cfg.batch / cfg.pairs:.4f}")


if __name__ == "__main__":
    main()
