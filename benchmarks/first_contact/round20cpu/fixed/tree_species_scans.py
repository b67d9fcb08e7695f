"""Tree species from terrestrial laser scans: an EdgeConv classifier on crowns that are sampled anew each time."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_SPECIES = 5
N_TREES = 160
RAW_POINTS = 1024
POINTS = 256
K = 12
BATCH = 12
ITERATIONS = 360


def seed_everything(seed=42):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def grow(species, n):
    """A crown: radius as a function of height is what tells the species apart."""
    h = torch.rand(n)
    shape = [h.sqrt(), 1 - h, (h * 3.14).sin(), torch.full_like(h, 0.5), (h * 6.28).cos().abs()][species]
    phi = torch.rand(n) * 6.2832
    r = shape * (0.6 + 0.4 * torch.rand(n).sqrt())
    return torch.stack([r * phi.cos(), r * phi.sin(), 2 * h], dim=1) + 0.02 * torch.randn(n, 3)


def nearest(points, k):
    """(B, N, 3) -> (B, N, k): the numbers of the k closest points, each point itself included."""
    distance = torch.cdist(points, points)
    return distance.topk(k, dim=-1, largest=False).indices


def to_rows(idx, n):
    """Row numbers within the flattened batch."""
    offset = torch.arange(idx.size(0)).view(-1, 1, 1) * n
    return (idx + offset).flatten()


class EdgeConv(nn.Module):
    """max over neighbours of W1 x_j + W2 x_i."""

    def __init__(self, cin, cout):
        super().__init__()
        self.neighbour = nn.Linear(cin, cout, bias=False)
        self.centre = nn.Linear(cin, cout)

    def forward(self, x, rows, k):
        b, n, _ = x.shape
        messages = self.neighbour(x).flatten(0, 1).index_select(0, rows).view(b, n, k, -1)
        return F.leaky_relu(messages.amax(2) + self.centre(x), 0.2)


class CrownNet(nn.Module):
    def __init__(self, k=K, classes=N_SPECIES):
        super().__init__()
        self.k = k
        self.convs = nn.ModuleList([EdgeConv(3, 32), EdgeConv(32, 48)])
        self.fuse = nn.Linear(80, 128)
        self.cls = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, points):
        rows = to_rows(nearest(points, self.k), points.size(1))
        x, levels = points, []
        for conv in self.convs:
            x = conv(x, rows, self.k)
            levels.append(x)
        x = F.leaky_relu(self.fuse(torch.cat(levels, dim=-1)), 0.2)
        return self.cls(x.amax(1))


class ScanSampler:
    def __init__(self):
        self.labels = torch.arange(N_TREES) % N_SPECIES
        self.clouds = torch.stack([grow(int(s), RAW_POINTS) for s in self.labels])

    def draw(self):
        trees = torch.randint(N_TREES, (BATCH,))
        subset = torch.randint(RAW_POINTS, (BATCH, POINTS))
        return self.clouds[trees[:, None], subset], self.labels[trees]


seed_everything()
sampler = ScanSampler()
net = CrownNet()
optim = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
correct = total = 0
for it in range(1, ITERATIONS + 1):
    clouds, labels = sampler.draw()
    logits = net(clouds)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
    optim.zero_grad()
    loss.backward()
    optim.step()
    correct += (logits.argmax(1) == labels).sum().item()
    total += BATCH
    if it % 60 == 0:
        print(f"it {it:4d} loss {loss.item():.4f} acc {correct / total:.3f}")
        correct = total = 0
