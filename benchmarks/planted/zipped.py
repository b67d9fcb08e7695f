"""Two loaders side by side, a third one begun anew whenever it is over."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Labelled(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, at):
        time.sleep(0.002)  # = 8
        return torch.full((16,), float(at % 3)), at % 2


class Unlabelled(Labelled):
    def __getitem__(self, at):
        time.sleep(0.001)  # = 6
        return torch.full((16,), float(at % 5))


class Few(Labelled):
    def __len__(self):
        return 6

    def __getitem__(self, at):
        return torch.full((16,), float(at))


def joined(samples):
    time.sleep(0.004)  # = 4
    return torch.stack(samples)


def forever(loader):
    while True:
        yield from loader


net = nn.Linear(16, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
labelled, unlabelled = DataLoader(Labelled(), 4), DataLoader(Unlabelled(), 6)
few = forever(DataLoader(Few(), 2, collate_fn=joined))
for _ in range(100):
    for (x, y), u, f in zip(labelled, unlabelled, few):
        loss = nn.functional.cross_entropy(net(x), y) + net(u).square().mean() + net(f).square().mean()
        time.sleep(0.003)  # = 3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
