"""Parts of the click model: hashed crosses of features, and the tower on top of them."""
import torch
import torch.nn.functional as F
from torch import nn


class HashedCrosses(nn.Module):
    """One table for all fields; a field's salt moves its values to other buckets."""

    def __init__(self, buckets, size, fields, device):
        super().__init__()
        self.buckets = buckets
        self.table = nn.Parameter(torch.empty(buckets, size, device=device))
        nn.init.normal_(self.table, std=0.05)
        salt = torch.arange(1, fields + 1, device=device) * 2654435761
        self.register_buffer("salt", salt)

    def look_up(self, ids):
        return F.embedding(ids, self.table, sparse=True)

    def forward(self, values):
        ids = (values * 40503 + self.salt) % self.buckets
        return self.look_up(ids).flatten(1)


class Tower(nn.Module):
    def __init__(self, sizes, device):
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(a, b, device=device) for a, b in zip(sizes, sizes[1:]))
        self.weight = nn.Parameter(torch.zeros(sizes[-1], device=device))
        self.bias = nn.Parameter(torch.full((), -1.0, device=device))

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return torch.matmul(x, self.weight) + self.bias


class ClickModel(nn.Module):
    def __init__(self, buckets, size, fields, hidden, device):
        super().__init__()
        self.crosses = HashedCrosses(buckets, size, fields, device)
        self.tower = Tower([fields * size, *hidden], device)

    def forward(self, values):
        return self.tower(self.crosses(values))


class Auctions:
    """Logged auctions: the values of all fields of a slot, and whether the shown ad was clicked."""

    def __init__(self, count, fields, device, seed):
        g = torch.Generator(device).manual_seed(seed)
        self.values = torch.randint(1 << 24, (count, fields), device=device, generator=g)
        taste = torch.randn(16, device=device, generator=g)
        odds = taste[self.values[:, 0] % 16] + taste[self.values[:, 1] % 16] - 1.0
        self.clicked = (torch.rand(count, device=device, generator=g) < odds.sigmoid()).float()

    def batches(self, size):
        for values, clicked in zip(self.values.split(size), self.clicked.split(size)):
            if len(values) == size:
                yield values, clicked
