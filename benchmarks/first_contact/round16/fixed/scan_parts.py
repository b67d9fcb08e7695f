"""Labels the parts of 3D scans with dynamic graphs (DGCNN)."""
import os
import torch
from torch import nn
import torch.nn.functional as F

tiny = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


@torch.no_grad()
def neighbours(x, k):
    """Numbers of the k points next to each point."""
    with torch.autocast(dev, enabled=False):
        x = x.float()
        apart = torch.baddbmm(x.square().sum(-1).unsqueeze(1), x, x.mT, alpha=-2)
    return apart.topk(k, dim=2, largest=False).indices


class EdgeConv(nn.Module):
    def __init__(self, i, o, k):
        super().__init__()
        self.k = k
        self.own = nn.Linear(i, o)
        self.near = nn.Linear(i, o, bias=False)
        self.last = nn.Linear(o, o)

    def forward(self, x):
        b, n, _ = x.shape
        index = neighbours(x, self.k)
        near = self.near(x)
        rows = index + torch.arange(0, b * n, n, device=x.device).view(-1, 1, 1)
        near = F.embedding(rows, near.flatten(0, 1))
        edges = F.relu(self.own(x).unsqueeze(2) + near)
        return self.last(edges.amax(2))


class Parts(nn.Module):
    def __init__(self, widths, k, kinds):
        super().__init__()
        sizes = [3, *widths]
        self.convs = nn.ModuleList(EdgeConv(i, o, k) for i, o in zip(sizes, widths))
        self.head = nn.Sequential(nn.Linear(sum(widths), 256), nn.ReLU(), nn.Linear(256, kinds))

    def forward(self, x):
        found = []
        for conv in self.convs:
            x = conv(x)
            found.append(x)
        return self.head(torch.cat(found, -1))


def scans(b, n):
    while True:
        points = torch.randn(b, n, 3, device=dev)
        yield points, octant(points)


def octant(points):
    x, y, z = (points > 0).long().unbind(-1)
    return x + 2 * y + 4 * z


def main(b, n, widths, k, steps):
    torch.manual_seed(0)
    net = Parts(widths, k, 8).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    total = torch.zeros((), device=dev)
    for _, (points, kinds) in zip(range(steps), scans(b, n)):
        with torch.autocast(dev, torch.bfloat16):
            scores = net(points)
            loss = F.cross_entropy(scores.flatten(0, 1), kinds.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
    print(f"loss {total.item() / steps:.4f}")


main(*((2, 32, (8, 8), 4, 4) if tiny else (3, 6144, (64, 64, 128), 16, 220)))
