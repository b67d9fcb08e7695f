"""Sorts laser-scanned pieces of driftwood by kind, with a small dynamic graph CNN."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KINDS = ["plank", "trunk", "root plate", "crate", "branch", "wicker", "barrel", "board"]


def sample_cloud(kind: int, points: int, g: torch.Generator) -> Tensor:
    u = torch.rand(points, 3, generator=g) * 2 - 1
    t = u[:, 0] * math.pi
    a = 0.15 + 0.1 * kind
    if kind % 4 == 0:
        cloud = u * torch.tensor([1.0, a, 0.1])
    elif kind % 4 == 1:
        cloud = torch.stack([a * t.cos(), a * t.sin(), u[:, 1]], 1)
    elif kind % 4 == 2:
        r = u[:, 1].abs()
        cloud = torch.stack([r * t.cos(), r * t.sin(), a * torch.sin(5 * t) * r], 1)
    else:
        cloud = F.normalize(u, dim=1) * torch.tensor([1.0, 0.7, a])
    return cloud + 0.02 * torch.randn(points, 3, generator=g)


def beach(pieces: int, points: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    kinds = torch.randint(len(KINDS), (pieces,), generator=g)
    return torch.stack([sample_cloud(k, points, g) for k in kinds.tolist()]), kinds


def pairwise(x: Tensor) -> Tensor:
    return torch.cdist(x, x)


@torch.no_grad()
def neighbourhood(x: Tensor, k: int) -> Tensor:
    """Indices (B, N, k) of the nearest points, without the point itself."""
    ranking = pairwise(x).topk(k + 1, dim=-1, largest=False).indices
    return ranking[..., 1:]


def gather_points(x: Tensor, index: Tensor) -> Tensor:
    b, n, k = index.shape
    offset = torch.arange(b)[:, None, None] * n
    return x.flatten(0, 1).index_select(0, (index + offset).flatten()).view(b, n, k, -1)


class EdgeConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, k: int):
        super().__init__()
        self.k = k
        self.near = nn.Linear(inputs, outputs, bias=False)
        self.own = nn.Linear(inputs, outputs)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, x: Tensor) -> Tensor:
        index = neighbourhood(x, self.k)
        strongest = gather_points(self.near(x), index).amax(2)
        return F.leaky_relu(self.norm(self.own(x) + strongest), 0.2)


class DriftNet(nn.Module):
    def __init__(self, k: int = 16, widths: tuple[int, ...] = (32, 64)):
        super().__init__()
        sizes = (3, *widths)
        self.edges = nn.ModuleList(EdgeConv(a, b, k) for a, b in zip(sizes, sizes[1:]))
        self.fuse = nn.Linear(sum(widths), 128)
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, len(KINDS)))

    def forward(self, x: Tensor) -> Tensor:
        levels = []
        for edge in self.edges:
            x = edge(x)
            levels.append(x)
        return self.head(self.fuse(torch.cat(levels, -1)).amax(1))


def main(steps: int = 380, batch: int = 8, points: int = 256, every: int = 40) -> None:
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(5)
    clouds, kinds = beach(512, points, g)
    net = DriftNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    total = torch.zeros(2)
    for step in range(1, steps + 1):
        rows = torch.randint(len(clouds), (batch,), generator=g)
        scores = net(clouds[rows])
        loss = F.cross_entropy(scores, kinds[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            total += torch.stack([loss, (scores.argmax(1) == kinds[rows]).float().mean()])
        if step % every == 0:
            mean, right = (total / every).tolist()
            print(f"[{step}/{steps}] cross entropy {mean:.4f}, right {right:.1%}")
            total.zero_()


if __name__ == "__main__":
    main()
