"""Predicts the pore volume of small frameworks from their bond graph. Plain PyTorch, no graph library."""
import random
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Batch = namedtuple("Batch", "atoms senders receivers owner target")
ELEMENTS = 12


def random_framework(rng):
    n = rng.randint(10, 26)
    kinds = [rng.randrange(ELEMENTS) for _ in range(n)]
    bonds = [(i, rng.randrange(max(0, i - 4), i)) for i in range(1, n)]
    for _ in range(n // 3):
        a, b = rng.sample(range(n), 2)
        bonds.append((a, b))
    volume = sum(k in (2, 5, 7) for k in kinds) / n + 0.5 * sum(abs(a - b) > 4 for a, b in bonds) / n
    return kinds, bonds, volume


def collate(frameworks):
    atoms, senders, receivers, owner, target = [], [], [], [], []
    for number, (kinds, bonds, volume) in enumerate(frameworks):
        base = len(atoms)
        atoms += kinds
        owner += [number] * len(kinds)
        senders += [base + a for a, _ in bonds] + [base + b for _, b in bonds]
        receivers += [base + b for _, b in bonds] + [base + a for a, _ in bonds]
        target.append(volume)
    return Batch(*map(torch.tensor, (atoms, senders, receivers, owner, target)))


class MessageLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(dim, dim)
        self.update = nn.GRUCell(dim, dim)

    def forward(self, h, senders, receivers):
        sent = F.relu(self.message(h))[senders]
        inbox = torch.zeros_like(h).index_add_(0, receivers, sent)
        return self.update(inbox, h)


def readout_mean(h, owner, graphs):
    sums = h.new_zeros(graphs, h.shape[1]).index_add_(0, owner, h)
    return sums / torch.bincount(owner, minlength=graphs).unsqueeze(1)


class PoreNet(nn.Module):
    def __init__(self, dim=64, rounds=3):
        super().__init__()
        self.kinds = nn.Embedding(ELEMENTS, dim)
        self.rounds = nn.ModuleList([MessageLayer(dim) for _ in range(rounds)])
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, batch):
        h = self.kinds(batch.atoms)
        for layer in self.rounds:
            h = layer(h, batch.senders, batch.receivers)
        return self.head(readout_mean(h, batch.owner, len(batch.target))).squeeze(1)


def epoch_loop(model, optimizer, batches, rng):
    total = torch.zeros(())
    for batch in rng.sample(batches, len(batches)):
        loss = F.l1_loss(model(batch), batch.target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / len(batches)


if __name__ == "__main__":
    rng = random.Random(99)
    torch.manual_seed(99)
    frameworks = [random_framework(rng) for _ in range(64 * 40)]
    batches = [collate(frameworks[i : i + 64]) for i in range(0, len(frameworks), 64)]
    model = PoreNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)
    for epoch in range(1, 25):
        print("epoch", epoch, "mean error %.5f" % epoch_loop(model, optimizer, batches, rng))
