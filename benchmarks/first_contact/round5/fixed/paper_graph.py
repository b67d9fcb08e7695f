"""Full-batch GraphSAGE on a synthetic citation graph."""
import os
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def prepare(seed=0):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sage(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own = nn.Linear(i, o)
        self.near = nn.Linear(i, o, bias=False)

    def forward(self, x, src, dst, inv_deg):
        near = self.near(x)
        pooled = torch.zeros_like(near).index_add_(0, dst, near.index_select(0, src))
        return self.own(x) + pooled * inv_deg


class Net(nn.Module):
    def __init__(self, features, hidden, classes, depth):
        super().__init__()
        dims = [features] + [hidden] * (depth - 1) + [classes]
        self.convs = nn.ModuleList([Sage(a, b) for a, b in zip(dims[:-1], dims[1:])])
        self.norms = nn.ModuleList([nn.LayerNorm(d) for d in dims[1:-1]])

    def forward(self, x, src, dst, inv_deg):
        for conv, norm in zip(self.convs, self.norms):
            x = F.dropout(F.relu(norm(conv(x, src, dst, inv_deg))), 0.2, self.training)
        return self.convs[-1](x, src, dst, inv_deg)


def citation_graph(nodes, degree, features, classes, device):
    src = torch.randint(nodes, (nodes * degree,), device=device)
    dst = torch.randint(nodes, (nodes * degree,), device=device).sort().values
    deg = torch.bincount(dst, minlength=nodes).clamp_(min=1)
    x = torch.randn(nodes, features, device=device)
    y = torch.randint(classes, (nodes,), device=device)
    return x, y, src, dst, (1.0 / deg).unsqueeze(1)


def main():
    device = prepare()
    small = os.environ.get("SMALL") == "1"
    nodes, degree, features, hidden, classes, depth, epochs = (
        (60, 3, 8, 16, 4, 2, 30) if small else (120_000, 10, 128, 256, 40, 4, 80))
    x, y, src, dst, inv_deg = citation_graph(nodes, degree, features, classes, device)
    net = Net(features, hidden, classes, depth).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=5e-4, fused=True)
    for epoch in range(epochs):
        net.train()
        out = net(x, src, dst, inv_deg)
        loss = F.cross_entropy(out[:nodes // 2], y[:nodes // 2])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch:03d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
