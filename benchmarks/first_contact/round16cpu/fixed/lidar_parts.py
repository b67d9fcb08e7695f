"""Parts of objects in lidar clouds: two edge convolutions over nearest neighbours."""
import functools
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY")
CLOUDS, POINTS, STEPS = (2, 32, 6) if TINY else (4, 512, 80)
K = 8
PARTS = 6


def without_graph(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        with torch.no_grad():
            return fn(*args, **kwargs)
    return inner


@without_graph
def neighbours(x, k):
    gaps = torch.cdist(x, x)
    gaps.diagonal(dim1=1, dim2=2).fill_(float("inf"))
    return gaps.topk(k, dim=-1, largest=False).indices


class EdgeConv(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.here = nn.Linear(d_in, d_out)
        self.step = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        index = neighbours(x, K)
        moved = self.step(x)
        picked = moved.gather(1, index.flatten(1)[..., None].expand(-1, -1, moved.size(-1)))
        reach = picked.view(b, n, K, -1).amax(dim=2)
        return F.relu(self.here(x) - moved + reach)


class PartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = EdgeConv(3, 48)
        self.second = EdgeConv(48, 64)
        self.label = nn.Sequential(nn.Linear(112, 96), nn.ReLU(), nn.Linear(96, PARTS))

    def forward(self, cloud):
        a = self.first(cloud)
        b = self.second(a)
        return self.label(torch.cat([a, b], -1))


def scans(seed=14):
    g = torch.Generator().manual_seed(seed)
    while True:
        part = torch.randint(PARTS, (CLOUDS, POINTS), generator=g)
        angle = part * (6.2832 / PARTS)
        centre = torch.stack([angle.cos(), angle.sin(), part * 0.2], -1)
        yield centre + 0.3 * torch.randn(CLOUDS, POINTS, 3, generator=g), part


def train():
    torch.manual_seed(0)
    net = PartNet()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, fused=True)
    source = scans()
    curve = []
    for _ in range(STEPS):
        cloud, part = next(source)
        loss = F.cross_entropy(net(cloud).flatten(0, 1), part.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        curve.append(loss.detach())
    return torch.stack(curve)


if __name__ == "__main__":
    curve = train()
    print("start %.4f  middle %.4f  end %.4f" % (curve[0], curve[STEPS // 2], curve[-1]))
