"""Graph isomorphism network that predicts a property of molecules (batched graphs, sum aggregation)."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
GRAPHS = 320 if CUDA else 6
ATOMS = (120, 280) if CUDA else (4, 9)
WIDTH = 256 if CUDA else 16
LAYERS = 4 if CUDA else 2
STEPS = 120 if CUDA else 3


class GraphBatch:
    """Disjoint union of graphs; offsets[i]:offsets[i + 1] are the atoms of graph i."""

    def __init__(self, atoms, source, target, offsets, label):
        self.atoms, self.source, self.target, self.label = atoms, source, target, label
        self.offsets = offsets
        counts = np.diff(offsets)
        self.num_graphs = len(counts)
        owner = np.repeat(np.arange(len(counts)), counts)
        self.owner = torch.from_numpy(owner).to(atoms.device)
        self.counts = torch.from_numpy(counts).to(atoms.device)


def random_batch(seed):
    """Ring-like molecules with random chords."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*ATOMS, GRAPHS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    pairs = []
    for size, first in zip(sizes, offsets):
        ring = np.stack([np.arange(size), (np.arange(size) + 1) % size])
        chords = rng.integers(0, size, (2, size // 2))
        pairs.append(np.concatenate([ring, chords], axis=1) + first)
    edges = np.concatenate(pairs, axis=1)
    edges = np.concatenate([edges, edges[::-1]], axis=1)
    edges = edges[:, np.argsort(edges[1], kind="stable")]
    kinds = rng.integers(0, 32, offsets[-1])
    label = np.array([np.mean(kinds[a:b] % 5) for a, b in zip(offsets, offsets[1:])], dtype=np.float32)
    tensors = [torch.from_numpy(np.ascontiguousarray(a)).to(DEVICE) for a in (kinds, *edges, label)]
    atoms, source, target, label = tensors
    return GraphBatch(atoms, source, target, offsets.tolist(), label)


class GINLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(inplace=True), nn.Linear(2 * width, width))

    def forward(self, h, source, target):
        total = torch.zeros_like(h).index_add_(0, target, h.index_select(0, source))
        return h + F.relu(self.mlp(self.norm((1 + self.eps) * h + total)))


class GIN(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(32, width)
        self.layers = nn.ModuleList(GINLayer(width) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, 1))

    def readout(self, h, batch):
        """Mean over the atoms of each graph."""
        pooled = []
        for a, b in zip(batch.offsets, batch.offsets[1:]):  # flaw: python-loop-over-tensor
            pooled.append(h[a:b].mean(dim=0))  # flaw: python-loop-over-tensor
        return torch.stack(pooled)  # flaw: python-loop-over-tensor

    def forward(self, batch):
        h = self.embed(batch.atoms)
        for layer in self.layers:
            h = layer(h, batch.source, batch.target)
        return self.head(self.readout(h, batch)).squeeze(-1)


def fit(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    trace = []
    for step in range(STEPS):
        batch = batches[step % len(batches)]
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            predicted = model(batch)
        loss = F.mse_loss(predicted.float(), batch.label)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        trace.append(loss.detach())
    return torch.stack(trace)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    batches = [random_batch(seed) for seed in range(6)]
    trace = fit(GIN(WIDTH, LAYERS).to(DEVICE), batches).tolist()
    print(f"{sum(b.num_graphs for b in batches)} molecules")
    for i in range(0, STEPS, max(1, STEPS // 5)):
        print(f"step {i:4d}: {trace[i]:.4f}")
    print(f"last: {trace[-1]:.4f}")


if __name__ == "__main__":
    main()
