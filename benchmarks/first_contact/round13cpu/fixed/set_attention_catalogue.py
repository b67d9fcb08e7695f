"""Outlier detection in sets of sensor readings with a set transformer (inference over a catalogue)."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


@register("mixing")
class Mixing(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.keyval = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.scale = (width // heads) ** -0.5

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q = self.split(self.query(x))
        k, v = (self.split(part) for part in self.keyval(x).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, scale=self.scale)
        return self.out(mixed.transpose(1, 2).flatten(2))


@register("feed")
class Feed(nn.Sequential):
    def __init__(self, width, factor):
        super().__init__(nn.Linear(width, factor * width), nn.ReLU(), nn.Linear(factor * width, width))


class Layer(nn.Module):
    def __init__(self, kind, width, **kwargs):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = REGISTRY[kind](width, **kwargs)

    def forward(self, x):
        return x + self.inner(self.norm(x))


def assemble(width, depth, heads):
    layers = [nn.Linear(6, width)]
    for _ in range(depth):
        layers.append(Layer("mixing", width, heads=heads))
        layers.append(Layer("feed", width, factor=2))
    return nn.Sequential(*layers, nn.LayerNorm(width), nn.Linear(width, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=280)
    parser.add_argument("--size", type=int, default=640)
    parser.add_argument("--batch", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(1)
    model = assemble(64, 2, 4).eval()
    generator = torch.Generator().manual_seed(6)
    flagged, total = 0, 0.0
    with torch.inference_mode():
        for _ in range(args.sets // args.batch):
            readings = torch.randn(args.batch, args.size, 6, generator=generator)
            score = model(readings).squeeze(-1)
            flagged += int((score > score.mean() + 2 * score.std()).sum())
            total += float(score.abs().mean())
    print(f"flagged {flagged} mean {total:.4f}")


if __name__ == "__main__":
    main()
