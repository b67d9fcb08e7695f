"""Mean-aggregating graph network on a sparse graph that stays on the device."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = "SMALL" in os.environ
NODES, DEGREE, FEAT, HIDDEN, CLASSES, EPOCHS = (100, 4, 16, 16, 4, 30) if SMALL else (300_000, 16, 128, 256, 16, 60)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Mean(torch.autograd.Function):
    """Product with a constant sparse matrix whose transpose is kept as well."""

    @staticmethod
    def forward(ctx, h, matrix, transposed):
        ctx.transposed = transposed
        with torch.autocast(h.device.type, enabled=False):
            return matrix @ h

    @staticmethod
    def backward(ctx, grad):
        return ctx.transposed @ grad, None, None


def mean_matrices(neighbours):
    rows = torch.arange(NODES, device=device).repeat_interleave(DEGREE)
    where = torch.stack([rows, neighbours.flatten()])
    value = torch.full((where.shape[1],), 1.0 / DEGREE, device=device)
    build = lambda w: torch.sparse_coo_tensor(w, value, (NODES, NODES)).coalesce().to_sparse_csr()
    return build(where), build(where.flip(0))


class SageLayer(nn.Module):
    def __init__(self, matrices, i, o):
        super().__init__()
        self.matrices = matrices
        self.own, self.other = nn.Linear(i, o), nn.Linear(i, o, bias=False)

    def forward(self, h):
        return self.own(h) + Mean.apply(self.other(h).float(), *self.matrices)


class Sage(nn.Module):
    def __init__(self, neighbours):
        super().__init__()
        m = mean_matrices(neighbours)
        self.layers = nn.ModuleList([SageLayer(m, FEAT, HIDDEN), SageLayer(m, HIDDEN, HIDDEN)])
        self.cls = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.cls(x)


def main():
    torch.manual_seed(0)
    neighbours = torch.randint(NODES, (NODES, DEGREE), device=device)
    x = torch.randn(NODES, FEAT, device=device)
    y = torch.randint(CLASSES, (NODES,), device=device)
    net = Sage(neighbours).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    for epoch in range(EPOCHS):
        with torch.autocast(device, torch.bfloat16):
            out = net(x)
        loss = F.cross_entropy(out.float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 20 == 0:
            print(epoch, f"{loss.item():.4f}")


if __name__ == "__main__":
    main()
