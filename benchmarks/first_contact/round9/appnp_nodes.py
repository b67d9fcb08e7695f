"""Predict, then propagate (APPNP): an MLP whose outputs walk over the graph ten times."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
NODES, LINKS = (250_000, 2_500_000) if CUDA else (200, 800)
FEATURES, HIDDEN, CLASSES = (512, 1024, 64) if CUDA else (16, 32, 8)
EPOCHS, HOPS, RESTART = (220, 10, 0.1) if CUDA else (10, 3, 0.1)


class Walk(torch.autograd.Function):
    """Z <- (1 - a) A Z + a H, repeated; A is symmetric, so the gradient takes the same walk."""

    @staticmethod
    def forward(ctx, adjacency, h):
        ctx.adjacency = adjacency
        z = h
        for _ in range(HOPS):
            z = torch.addmm(h, adjacency, z, beta=RESTART, alpha=1 - RESTART)
        return z

    @staticmethod
    def backward(ctx, grad):
        walked, total = grad.contiguous(), None
        for _ in range(HOPS):
            total = walked * RESTART if total is None else total.add_(walked, alpha=RESTART)
            walked = (ctx.adjacency @ walked).mul_(1 - RESTART)
        return None, total.add_(walked)


def build_adjacency(source, target):
    """The symmetric normalised matrix with self-loops, as CSR."""
    loops = torch.arange(NODES, device=DEVICE)
    rows, cols = torch.cat([source, target, loops]), torch.cat([target, source, loops])
    ones = torch.ones(len(rows), device=DEVICE)
    matrix = torch.sparse_coo_tensor(torch.stack([rows, cols]), ones, (NODES, NODES)).coalesce()
    rows, cols = matrix.indices()
    degree = torch.zeros(NODES, device=DEVICE).index_add_(0, rows, matrix.values())
    scale = degree.rsqrt()
    values = matrix.values() * scale[rows] * scale[cols]
    return torch.sparse_coo_tensor(
        matrix.indices(), values, (NODES, NODES), is_coalesced=True
    ).to_sparse_csr()


class APPNP(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(HIDDEN, CLASSES),
        )

    def forward(self, x, adjacency):
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=CUDA):
            h = self.mlp(x)
        return Walk.apply(adjacency, h.float())


def make_nodes():
    source = torch.randint(0, NODES, (LINKS,), device=DEVICE)
    hop = torch.randn(LINKS, device=DEVICE).mul_(NODES / 4 / CLASSES).long()
    label = torch.arange(NODES, device=DEVICE) * CLASSES // NODES
    x = torch.randn(NODES, FEATURES, device=DEVICE)
    x[:, :CLASSES] += 0.2 * F.one_hot(label, CLASSES)[:, :FEATURES]
    x = x.bfloat16() if CUDA else x
    return x, label, build_adjacency(source, (source + hop) % NODES)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    x, label, adjacency = make_nodes()
    train_mask = torch.rand(NODES, device=DEVICE) < 0.1
    train_nodes = train_mask.nonzero().squeeze(1)
    train_label = label[train_nodes]
    model = APPNP().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=5e-3, fused=CUDA)
    for epoch in range(EPOCHS):
        logits = model(x, adjacency)
        loss = F.cross_entropy(logits.index_select(0, train_nodes), train_label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.inference_mode():
        hit = (model(x, adjacency).argmax(1) == label).float()
        print(f"loss {loss.item():.4f}, accuracy elsewhere {hit[~train_mask].mean().item():.4f}")


main()
