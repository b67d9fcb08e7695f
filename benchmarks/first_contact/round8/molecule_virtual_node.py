"""Graph regression on batches of molecules: GIN with edge features and a virtual node."""

from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


class Batch(NamedTuple):
    atoms: Tensor
    source: Tensor
    target: Tensor
    bonds: Tensor
    graph: Tensor
    y: Tensor


def synthetic_batches(count, graphs, device):
    """Molecules of 16 to 48 atoms; each atom has four bonds inside its molecule."""
    batches = []
    for _ in range(count):
        sizes = torch.randint(16, 49, (graphs,), device=device)
        first = sizes.cumsum(0) - sizes
        graph = torch.repeat_interleave(torch.arange(graphs, device=device), sizes)
        nodes = graph.numel()
        target = torch.arange(nodes, device=device).repeat_interleave(4)
        home = graph[target]
        source = first[home] + (torch.rand(4 * nodes, device=device) * sizes[home]).long()
        atoms = torch.randint(28, (nodes,), device=device)
        bonds = torch.randint(4, (4 * nodes,), device=device)
        batches.append(Batch(atoms, source, target, bonds, graph, torch.randn(graphs, device=device)))
    return batches


class GINLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bond = nn.Embedding(4, dim)
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(inplace=True), nn.Linear(2 * dim, dim))

    def forward(self, h, b):
        h = self.norm(h)
        message = F.relu(h.index_select(0, b.source) + self.bond(b.bonds), inplace=True)
        return self.mlp(h.index_add(0, b.target, message))


def pool(h, graph, graphs):
    membership = F.one_hot(graph, graphs).to(h.dtype)  # flaw: none-yet(one-hot-matmul)
    return membership.t() @ h  # flaw: none-yet(one-hot-matmul)


class MoleculeNet(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.atoms = nn.Embedding(28, dim)
        self.virtual = nn.Parameter(torch.zeros(1, dim))
        self.layers = nn.ModuleList(GINLayer(dim) for _ in range(layers))
        self.update = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim)) for _ in range(layers)
        )
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 1))

    def forward(self, b):
        graphs = b.y.numel()
        h = self.atoms(b.atoms)
        v = self.virtual.expand(graphs, -1)
        for layer, update in zip(self.layers, self.update, strict=True):
            h = h + layer(h, b)
            v = v + update(pool(h, b.graph, graphs))
            h = h + v.index_select(0, b.graph)
        return self.head(pool(h, b.graph, graphs)).squeeze(-1)


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    graphs, dim, layers, steps = (2048, 256, 5, 300) if gpu else (6, 16, 2, 15)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    batches = synthetic_batches(8, graphs, device)
    model = MoleculeNet(dim, layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=gpu)
    for step in range(steps):
        batch = batches[step % len(batches)]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=gpu):
            predicted = model(batch)
        loss = F.l1_loss(predicted.float(), batch.y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: mae {loss.item():.4f}")
    print(f"final mae {loss.item():.5f}")


if __name__ == "__main__":
    main()
