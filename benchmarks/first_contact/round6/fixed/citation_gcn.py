import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.getenv("SMALL")
N, E, FEAT, HID, CLASSES, EPOCHS = (100, 600, 16, 16, 5, 30) if SMALL else (8192, 400_000, 1024, 1024, 40, 120)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Graph(nn.Module):
    """A fixed citation graph as a dense operator."""

    def __init__(self, n, edges):
        super().__init__()
        self.n = n
        self.register_buffer("edges", edges)
        self.register_buffer("matrix", self.build(), persistent=False)

    def operator(self):
        return self.matrix

    def build(self):
        a = torch.zeros(self.n, self.n, device=self.edges.device)
        a.index_put_((self.edges[0], self.edges[1]), torch.ones((), device=a.device))
        a = torch.maximum(a, a.T)
        a.fill_diagonal_(1.0)
        scale = a.sum(1).rsqrt()
        return (scale[:, None] * a * scale[None, :]).to(torch.bfloat16)

    def forward(self, x):
        return self.operator() @ x


class Convolution(nn.Module):
    def __init__(self, graph, i, o):
        super().__init__()
        self.graph = graph
        self.lin = nn.Linear(i, o)

    def forward(self, x):
        return self.graph(self.lin(x))


class GCN(nn.Module):
    def __init__(self, graph):
        super().__init__()
        dims = [FEAT, HID, HID, HID]
        self.convs = nn.ModuleList(Convolution(graph, a, b) for a, b in zip(dims, dims[1:]))
        self.cls = nn.Linear(HID, CLASSES)

    def forward(self, x):
        for conv in self.convs:
            x = F.dropout(F.relu(conv(x)), 0.3, self.training)
        return self.cls(x)


def citations():
    g = torch.Generator().manual_seed(4)
    edges = torch.randint(N, (2, E), generator=g)
    return edges, torch.randn(N, FEAT, generator=g), torch.randint(CLASSES, (N,), generator=g)


def main():
    torch.manual_seed(0)
    edges, x, y = (t.to(dev) for t in citations())
    net = GCN(Graph(N, edges)).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=5e-4, fused=True)
    for epoch in range(EPOCHS):
        with torch.autocast(dev.type, torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 50 == 0:
            print(f"{epoch=} {loss.item():.4f}")


if __name__ == "__main__":
    main()
