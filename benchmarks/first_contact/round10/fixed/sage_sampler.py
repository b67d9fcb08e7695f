"""GraphSAGE with pooling aggregators; neighbours are sampled on the host with numpy."""

import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
device = torch.device("cuda" if CUDA else "cpu")

NUM_NODES = 500_000 if CUDA else 400
AVG_DEGREE = 15
FEATS, HIDDEN, CLASSES = (256, 1024, 48) if CUDA else (8, 16, 4)
FANOUT = (10, 10) if CUDA else (3, 3)
BATCH = 4096 if CUDA else 16
STEPS = 250 if CUDA else 6


class Graph:
    """Compressed sparse rows."""

    def __init__(self, rng):
        degree = rng.poisson(AVG_DEGREE, NUM_NODES) + 1
        self.indptr = np.concatenate([[0], np.cumsum(degree)])
        self.indices = rng.integers(0, NUM_NODES, self.indptr[-1])

    def neighbours(self, nodes, fanout, rng):
        first = self.indptr[nodes]
        degree = self.indptr[nodes + 1] - first
        pick = (rng.random((len(nodes), fanout)) * degree[:, None]).astype(np.int64)
        return self.indices[first[:, None] + pick]

    def sample(self, seeds, rng):
        hop1 = self.neighbours(seeds, FANOUT[0], rng)
        hop2 = self.neighbours(hop1.ravel(), FANOUT[1], rng)
        return seeds, hop1.ravel(), hop2.ravel()


class SAGEPool(nn.Module):
    def __init__(self, n_in, n_pool, n_out):
        super().__init__()
        self.pool = nn.Linear(n_in, n_pool)
        self.own = nn.Linear(n_in, n_out)
        self.neigh = nn.Linear(n_pool, n_out, bias=False)

    def forward(self, x, neighbours):
        pooled = F.relu(self.pool(neighbours)).view(len(x), -1, self.pool.out_features).amax(1)
        return self.own(x) + self.neigh(pooled)


class SAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = SAGEPool(FEATS, HIDDEN, HIDDEN)
        self.layer2 = SAGEPool(HIDDEN, HIDDEN, CLASSES)

    def forward(self, x0, x1, x2):
        inner = F.relu(self.layer1(x1, x2))
        outer = F.relu(self.layer1(x0, x1))
        return self.layer2(outer, inner)


def to_device(array):
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if CUDA else tensor


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(0)
    graph = Graph(rng)
    dtype = torch.bfloat16
    features = torch.randn(NUM_NODES, FEATS, device=device, dtype=dtype)
    labels = torch.randint(CLASSES, (NUM_NODES,), device=device)
    model = SAGE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)

    started = time.perf_counter()
    for step in range(STEPS):
        seeds = rng.integers(0, NUM_NODES, BATCH)
        nodes = [to_device(a) for a in graph.sample(seeds, rng)]
        with torch.autocast(device.type, dtype=dtype):
            logits = model(*(features[n] for n in nodes))
        loss = F.cross_entropy(logits.float(), labels[nodes[0]])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 49 or step == STEPS - 1:
            speed = BATCH * (step + 1) / (time.perf_counter() - started)
            print(f"step {step + 1}: loss {loss.item():.4f}, {speed:,.0f} seeds/s")


if __name__ == "__main__":
    main()
