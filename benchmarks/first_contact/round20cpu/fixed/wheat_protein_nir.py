"""Protein content of wheat from near-infrared spectra. Residual MLPs from a small registry."""
import argparse

import torch
from torch import nn

MODELS, ACTIVATIONS = {}, {}


def register(table, name):
    def wrap(obj):
        table[name] = obj
        return obj
    return wrap


@register(ACTIVATIONS, "relu")
def relu(x):
    return nn.functional.relu(x)


@register(ACTIVATIONS, "gelu")
def gelu(x):
    return nn.functional.gelu(x)


class Act(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.fn = name, ACTIVATIONS[name]

    def forward(self, x):
        return self.fn(x)

    def extra_repr(self):
        return self.name


class Block(nn.Module):
    def __init__(self, dim, ratio, act):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ffn = nn.Sequential(nn.Linear(dim, dim * ratio), Act(act), nn.Linear(dim * ratio, dim))

    def forward(self, x):
        return x + self.ffn(self.norm(x))


class SpectrumMLP(nn.Module):
    def __init__(self, channels, dim, depth, ratio, act):
        super().__init__()
        self.embed = nn.Linear(channels, dim)
        self.blocks = nn.Sequential(*(Block(dim, ratio, act) for _ in range(depth)))
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x))).squeeze(-1)


@register(MODELS, "mlp_tiny")
def mlp_tiny(channels):
    return SpectrumMLP(channels, dim=48, depth=2, ratio=2, act="relu")


@register(MODELS, "mlp_small")
def mlp_small(channels):
    return SpectrumMLP(channels, dim=64, depth=4, ratio=4, act="gelu")


def create_model(name, **kwargs):
    if name not in MODELS:
        raise KeyError(f"unknown model {name!r}, have {sorted(MODELS)}")
    return MODELS[name](**kwargs)


def scans(n, channels, seed):
    g = torch.Generator().manual_seed(seed)
    grid = torch.linspace(0, 1, channels)
    content = torch.randn(n, 4, generator=g)
    bands = torch.stack([torch.exp(-((grid - c) / 0.08) ** 2) for c in (0.2, 0.45, 0.6, 0.85)])
    spectra = content @ bands + 0.05 * torch.randn(n, channels, generator=g)
    protein = content[:, 1] * 0.8 + 0.3 * torch.tanh(content[:, 2] * content[:, 3])
    return spectra, protein


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mlp_small", choices=sorted(MODELS))
    parser.add_argument("--channels", type=int, default=120)
    parser.add_argument("--samples", type=int, default=12_800)
    parser.add_argument("--bs", type=int, default=640)
    parser.add_argument("--epochs", type=int, default=28)
    args = parser.parse_args()

    torch.manual_seed(0)
    spectra, protein = scans(args.samples, args.channels, seed=5)
    model = create_model(args.model, channels=args.channels)
    criterion = nn.HuberLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    for epoch in range(args.epochs):
        total = 0.0
        for rows in torch.randperm(args.samples).split(args.bs):
            optimizer.zero_grad()
            loss = criterion(model(spectra[rows]), protein[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        if epoch % 2 == 0:
            print(f"{args.model} epoch {epoch:02d} huber {total / args.samples:.5f}")


if __name__ == "__main__":
    main()
