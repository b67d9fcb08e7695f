"""Classifies wafer maps into failure patterns with a plain vision transformer over dies."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

PATTERNS = ("none", "ring", "scratch", "blob")


@dataclass
class InspectorArgs:
    side: int = 32
    patch: int = 2
    dim: int = 64
    heads: int = 4
    depth: int = 2
    batch: int = 6
    steps: int = 250
    lr: float = 1e-3


def wafer(kind: int, side: int, gen: torch.Generator) -> Tensor:
    y, x = torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij")
    dead = torch.zeros(side, side)
    r = torch.rand(3, generator=gen)
    if PATTERNS[kind] == "ring":
        dead = ((x.hypot(y) - 0.4 - 0.4 * r[0]).abs() < 0.08).float()
    elif PATTERNS[kind] == "scratch":
        angle = math.pi * r[0]
        dead = ((x * torch.cos(angle) + y * torch.sin(angle) - 0.5 * r[1]).abs() < 0.06).float()
    elif PATTERNS[kind] == "blob":
        dead = ((x - r[0] + 0.5).hypot(y - r[1] + 0.5) < 0.2 + 0.2 * r[2]).float()
    specks = (torch.rand(side, side, generator=gen) < 0.05).float()
    return torch.maximum(dead, specks)


class DieMixer(nn.Module):
    """Lets every patch of dies look at every other one."""

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.project(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.merge(seen.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.before_mix, self.mix = nn.LayerNorm(dim), DieMixer(dim, heads)
        self.before_mlp = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.before_mix(x))
        return x + self.mlp(self.before_mlp(x))


class Inspector(nn.Module):
    def __init__(self, a: InspectorArgs):
        super().__init__()
        self.patches = nn.Unfold(a.patch, stride=a.patch)
        self.embed = nn.Linear(a.patch**2, a.dim)
        self.where = nn.Parameter(torch.randn((a.side // a.patch) ** 2, a.dim) * 0.1)
        self.layers = nn.Sequential(*(Layer(a.dim, a.heads) for _ in range(a.depth)))
        self.classify = nn.Linear(a.dim, len(PATTERNS))

    def forward(self, maps: Tensor) -> Tensor:
        tokens = self.embed(self.patches(maps.unsqueeze(1)).transpose(1, 2)) + self.where
        return self.classify(self.layers(tokens).mean(1))


def main(a: InspectorArgs = InspectorArgs()) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(40)
    gen = torch.Generator().manual_seed(41)
    kinds = torch.randint(len(PATTERNS), (800,), generator=gen)
    maps = torch.stack([wafer(k, a.side, gen) for k in kinds.tolist()])
    model = Inspector(a)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, fused=True)
    correct = 0
    for step in range(1, a.steps + 1):
        pick = torch.randint(len(kinds), (a.batch,), generator=gen)
        scores = model(maps[pick])
        loss = nn.functional.cross_entropy(scores, kinds[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += int((scores.argmax(1) == kinds[pick]).sum())
        if step % 50 == 0:
            print(f"step {step}  loss {loss.item():.4f}  running accuracy {correct / (50 * a.batch):.3f}")
            correct = 0


if __name__ == "__main__":
    main()
