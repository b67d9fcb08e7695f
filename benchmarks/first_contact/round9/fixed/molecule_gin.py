"""Graph isomorphism network on small molecule-like graphs, with random-walk encodings."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
MOLECULES = 1024 * 16 if CUDA else 64
BATCH = 1024 if CUDA else 16
EPOCHS = 5 if CUDA else 2
HIDDEN, DEPTH = (512, 8) if CUDA else (32, 2)
ATOMS, BONDS, WALK = 24, 8, 16


class Molecules(Dataset):
    """Random trees with a few rings; atoms and bonds have one of a few kinds."""

    def __init__(self, count, seed=0):
        rng = np.random.default_rng(seed)
        self.sizes = rng.integers(12, 32, count)
        self.links, self.atoms, self.bonds = [], [], []
        for n in self.sizes:
            parents = rng.integers(0, np.arange(1, n))
            rings = rng.integers(0, n, (2, 3))
            links = np.concatenate([np.stack([parents, np.arange(1, n)]), rings], axis=1)
            self.links.append(links)
            self.atoms.append(rng.integers(0, ATOMS, n))
            self.bonds.append(rng.integers(0, BONDS, links.shape[1]))
        self.targets = np.array([a.mean() / ATOMS for a in self.atoms], dtype=np.float32)

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        n, links = self.sizes[i], self.links[i]
        adjacency = np.zeros((n, n), dtype=np.float32)
        adjacency[links[0], links[1]] = adjacency[links[1], links[0]] = 1.0
        walk = adjacency / adjacency.sum(1, keepdims=True)
        power, encoding = walk, np.empty((n, WALK), dtype=np.float32)
        for k in range(WALK):
            encoding[:, k] = power.diagonal()
            power = power @ walk
        x = np.concatenate([np.eye(ATOMS, dtype=np.float32)[self.atoms[i]], encoding], axis=1)
        edges = np.concatenate([links, links[::-1]], axis=1)
        kinds = np.eye(BONDS, dtype=np.float32)[np.tile(self.bonds[i], 2)]
        return x, edges, kinds, self.targets[i]


def collate(graphs):
    xs, edges, kinds, targets = zip(*graphs)
    sizes = np.array([len(x) for x in xs])
    offsets = np.cumsum(sizes) - sizes
    edge_index = np.concatenate([e + o for e, o in zip(edges, offsets)], axis=1)
    return (
        torch.from_numpy(np.concatenate(xs)),
        torch.from_numpy(edge_index),
        torch.from_numpy(np.concatenate(kinds)),
        torch.from_numpy(np.repeat(np.arange(len(xs)), sizes)),
        torch.from_numpy(np.array(targets)),
    )


class GINELayer(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.edge = nn.Linear(BONDS, hidden)
        self.eps = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(
            nn.Linear(hidden, 2 * hidden, bias=False),
            nn.BatchNorm1d(2 * hidden),
            nn.ReLU(inplace=True),
            nn.Linear(2 * hidden, hidden),
        )

    def forward(self, x, edge_index, kinds):
        message = F.relu(x.index_select(0, edge_index[0]) + self.edge(kinds), inplace=True)
        total = ((1 + self.eps) * x).index_add_(0, edge_index[1], message)
        return x + self.mlp(total)


class GIN(nn.Module):
    def __init__(self, hidden, depth):
        super().__init__()
        self.first = nn.Linear(ATOMS + WALK, hidden)
        self.layers = nn.ModuleList(GINELayer(hidden) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x, edge_index, kinds, owner, graphs):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, edge_index, kinds)
        pooled = torch.zeros(graphs, x.size(1), dtype=x.dtype, device=x.device)
        return self.head(pooled.index_add(0, owner, x)).squeeze(1)


def train(model, loader):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=CUDA)
    for epoch in range(EPOCHS):
        total = torch.zeros((), device=DEVICE)
        for batch in loader:
            x, edge_index, kinds, owner, target = (t.to(DEVICE, non_blocking=True) for t in batch)
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
                predicted = model(x, edge_index, kinds, owner, len(target))
            loss = F.l1_loss(predicted.float(), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach()
        print(f"epoch {epoch}: mean absolute error {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(
        Molecules(MOLECULES),
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        collate_fn=collate,
        pin_memory=CUDA,
        num_workers=14 if CUDA else 1,
        persistent_workers=True,
    )
    train(GIN(HIDDEN, DEPTH).to(DEVICE), loader)
