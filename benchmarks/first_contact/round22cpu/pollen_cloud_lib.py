"""Edge convolutions on unordered points."""
import torch
from torch import nn


def by_distance(points):
    """For each point all others of its cloud, the nearest first, and how far they are."""
    gaps = torch.cdist(points, points)
    return gaps.sort(dim=-1)  # flaw: full-sort


def edges(h, neighbours):
    rows, count, k = neighbours.shape
    index = neighbours.flatten(1)[..., None].expand(-1, -1, h.shape[-1])
    near = h.gather(1, index).view(rows, count, k, -1)
    return near - h[:, :, None]


class EdgeConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.own, self.edge = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)
        self.norm = nn.LayerNorm(cout)

    def forward(self, h, neighbours):
        pulled = self.edge(edges(h, neighbours)).amax(dim=2)
        return torch.relu(self.norm(self.own(h) + pulled))


class PollenNet(nn.Module):
    def __init__(self, taxa, k=12, width=48):
        super().__init__()
        self.k = k
        self.layers = nn.ModuleList([EdgeConv(3, width), EdgeConv(width, width)])
        self.taxon = nn.Linear(2 * width, taxa)

    def forward(self, points):
        _, order = by_distance(points)  # flaw: full-sort
        neighbours = order[..., : self.k]  # flaw: full-sort
        h = points
        for layer in self.layers:
            h = layer(h, neighbours)
        return self.taxon(torch.cat([h.amax(1), h.mean(1)], dim=1))
